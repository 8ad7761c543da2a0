"""Files out: one file a format."""

from sapp_ppb.files import write_text_atomic
from sapp_ppb.writers.comparison_file import comparison_to_json
from sapp_ppb.writers.frameworks.mindformers import (
    MindformersLists,
    mindformers_lists,
    mindformers_lists_text,
)
from sapp_ppb.writers.frameworks.mindformers_config import mindformers_text
from sapp_ppb.writers.frameworks.mindformers_edit import mindformers_into
from sapp_ppb.writers.guide_file import guide_to_yaml
from sapp_ppb.writers.model_file import model_to_json, write_model
from sapp_ppb.writers.plan_file import plan_to_json, write_plan

__all__ = [
    "MindformersLists",
    "comparison_to_json",
    "guide_to_yaml",
    "mindformers_into",
    "mindformers_lists",
    "mindformers_lists_text",
    "mindformers_text",
    "model_to_json",
    "plan_to_json",
    "write_model",
    "write_plan",
    "write_text_atomic",
]
