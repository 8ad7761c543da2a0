"""Files in: one file a format."""

from sapp_ppb.readers.formats.json_file import read_json
from sapp_ppb.readers.measurements.galvatron_profile import read_galvatron
from sapp_ppb.readers.measurements.layers_csv import read_layers_csv
from sapp_ppb.readers.measurements.pipedream_graph import read_operator_graph
from sapp_ppb.readers.models.model_file import read_model
from sapp_ppb.readers.plans.named_plan import NamedPlan
from sapp_ppb.readers.plans.order_file import read_order
from sapp_ppb.readers.plans.plan_file import read_plan
from sapp_ppb.readers.user_plans import is_yaml, read_all_plans, read_config_plan, read_user_plans

__all__ = [
    "NamedPlan",
    "is_yaml",
    "read_all_plans",
    "read_config_plan",
    "read_galvatron",
    "read_json",
    "read_layers_csv",
    "read_model",
    "read_operator_graph",
    "read_order",
    "read_plan",
    "read_user_plans",
]
