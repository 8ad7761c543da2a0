"""Files in: one file a format."""

from sapp_ppb.readers.json_file import read_json
from sapp_ppb.readers.model_file import read_model
from sapp_ppb.readers.order_file import read_order
from sapp_ppb.readers.plan_file import read_plan

__all__ = ["read_json", "read_model", "read_order", "read_plan"]
