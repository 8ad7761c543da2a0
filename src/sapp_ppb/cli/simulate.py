"""``sapp-ppb simulate``: what a plan that exists takes."""

from sapp_ppb.cli.guard import FITS, NOTHING_FITS
from sapp_ppb.cli.options import AsJson, ModelPath, PlanPath, Tokens, tokens_per_micro_batch
from sapp_ppb.cli.output import write_document, write_result

SHORT_HELP = "Time a plan that exists."
HELP = """
Time a plan that exists and find the peak memory of every stage.

Exits with 1 when a stage needs more than the memory limit in the plan file.

\b
Examples:
  sapp-ppb simulate llama2_70b.json out/plan.json
  sapp-ppb simulate llama2_70b.json out/plan.json --json
"""


def simulate(model: ModelPath, plan: PlanPath, tokens: Tokens = None, json_: AsJson = False) -> int:
    """Time a plan file."""
    from sapp_ppb.cli.tables import outcome_text
    from sapp_ppb.readers import read_model, read_plan
    from sapp_ppb.simulator import retime
    from sapp_ppb.writers import plan_to_json

    tokens = tokens_per_micro_batch(tokens)
    timeline, outcome = retime(read_plan(plan, read_model(model)), str(plan))
    if json_:
        write_document(plan_to_json(outcome))
    else:
        write_result(outcome_text(outcome, timeline, tokens=tokens))
    return FITS if timeline.fits_memory else NOTHING_FITS
