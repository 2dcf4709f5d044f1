"""Whether what is shown first addresses the cause: python tests/benchmarks/fixes.py LABELLED

LABELLED is a directory of runs with a labels.jsonl that names the `cause` of each fault. A run counts as addressed where the first or
second fix of a finding addresses its cause: strictly of its leading finding, the first that the command prints; and of any finding
that is shown. CAUSES says which fixes address which cause, in the words of the labels. Causes that say what is seen, not why, are
left out. Demanded is a share of 0.9 for the leading finding.
"""

import json
import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

DEMANDED = 0.9
SHOWN_FIRST = 2

# Words of a cause → fixes that address it. The first line whose words are found counts.
CAUSES = (
    (r"visible in|sweep$|^slow loss", ()),
    (r"NaN (rows|features)", ("clean-rows", "check-inputs")),
    (r"log of zero|log\(0\)|without clamp", ("stable-loss", "safe-log")),
    (r"half-precision", ("loss-scaling", "scale-inputs")),
    (r"corrupt batch", ("check-inputs", "clean-rows", "clip-gradients")),
    (r"unscaled inputs(,| and)", ("scale-inputs", "lower-learning-rate")),  # names two
    (r"large initial weights, no clipping", ("better-initialization", "clip-gradients")),
    (r"inputs not scaled|unscaled|lose their scaling", ("scale-inputs",)),
    (r"learning rate is zero", ("plot-schedule", "schedule-length", "tune-learning-rate", "raise-learning-rate")),
    (r"decay_steps|exponential decay|cosine period|linear decay ends", ("schedule-length", "plot-schedule", "schedule-floor")),
    (r"warm-up longer", ("shorter-warm-up", "plot-schedule")),
    (r"schedule|learning.rate (jump|multiplied|grows)|rate jumps", ("plot-schedule", "lower-learning-rate", "warm-up", "schedule-length")),
    (r"weights far too small|weights far too large|large initial weights|same constant|weights zero", ("better-initialization",)),
    (r"biases|all units dead from the start", ("better-initialization", "leaky-activation")),
    (r"deep sigmoid", ("relu-family", "normalize-layers", "residual-links")),
    (r"gradients grow from layer to layer", ("better-initialization", "normalize-layers", "residual-links", "clip-gradients")),
    (r"rate.*too high|stability limit|large step", ("lower-learning-rate", "tune-learning-rate")),
    (r"rate.*too low", ("raise-learning-rate", "tune-learning-rate")),
    (r"penalty|weight decay", ("less-regularization",)),
    (r"capacity|linear model on|hidden unit|width", ("larger-model", "stronger-architecture")),
    (r"too few epochs", ("train-longer",)),
    (r"frozen|trainable=False|excluded from the optimizer|missing from the gradient", ("trainable-parameters", "check-training-loop")),
    (r"optimizer\.step|apply_gradients|detached", ("check-training-loop", "trainable-parameters")),
    (r"labels (drawn|shuffled)|no information", ("look-at-batch", "check-labels", "feature-engineering")),
    (r"uninformative", ("look-at-batch", "feature-engineering", "check-labels", "imbalance-metric")),
    (r"imbalanced", ("imbalance-metric", "class-weights", "resample-classes", "focal-loss")),
    (r"noisy examples|more param|tiny corpus|overfits", ("early-stopping", "weight-decay", "dropout", "augment-data", "smaller-model")),
    (r"long after convergence", ("early-stopping",)),
    (r"labels corrupted", ("check-labels",)),
    (r"carry the label|is the training set", ("check-split",)),
    (r"easy samples", ("representative-validation",)),
    (r"cache without", ("bounded-cache", "find-growth")),
    (r"validation outputs", ("free-after-evaluation", "delete-references")),
    (r"retained|kept", ("delete-references", "find-growth")),
    (r"(loader|pipeline) slows", ("time-parts-of-step", "dataloader-workers", "prefetch")),
    (r"growing list", ("time-parts-of-step", "bounded-cache", "less-host-work")),
    (r"environment slows", ("time-parts-of-step",)),
    (r"throttled|neighbour", ("check-machine",)),
    (r"from scratch|new model|version folder", ("directory-per-run",)),
    (r"older", ("checkpoint-whole-state", "purge-step")),
    (r"initial_epoch|counter starts", ("resume-step",)),
)  # fmt: skip


def addressing(cause: str) -> tuple[str, ...] | None:
    """The fixes that address a cause, empty where it is none, None where no line has its words."""
    return next((fixes for words, fixes in CAUSES if re.search(words, cause)), None)


def main(labelled: Path) -> int:
    import tb_advisor
    from tb_advisor.diagnosis import Severity

    report = tb_advisor.diagnose(labelled)
    shown: dict[str, list] = defaultdict(list)
    for outcome, diagnosis in report.diagnoses:
        if diagnosis.shown and not outcome.jobs:
            shown[outcome.job].append((outcome, diagnosis))
    of_run = {run: job.name for job in report.jobs for run in (job.name, *job.runs)}
    for words, fixes in CAUSES:
        print(f"{words:75} {', '.join(fixes) or '(no cause)'}")
    counts = defaultdict(int)
    missed = []
    for label in map(json.loads, (labelled / "labels.jsonl").read_text("utf-8").splitlines()):
        wanted = addressing(label["cause"]) if not label["healthy"] and label["labels"] else ()
        if wanted is None:
            print("no line for", label["cause"])
        if not wanted:
            continue
        job = next(of_run[run] for run in (label["run"], *label["sub_runs"]) if run in of_run)
        found = sorted(shown[job], key=lambda pair: -list(Severity).index(pair[1].severity))
        firsts = [diagnosis.fixes[:SHOWN_FIRST] for _, diagnosis in found]
        leading = bool(firsts) and bool(set(firsts[0]) & set(wanted))
        counts["runs"] += 1
        counts["found"] += bool(found)
        counts["leading"] += leading
        counts["any"] += any(set(first) & set(wanted) for first in firsts)
        if not leading:
            missed.append((label["run"], label["cause"], [(o.rule, d.fixes[:SHOWN_FIRST]) for o, d in found]))
    for run, cause, findings in missed:
        print(f"\n{run}: {cause}")
        for rule, fixes in findings or [("nothing shown", ())]:
            print(f"    {rule}: {', '.join(fixes)}")
    share = counts["leading"] / max(1, counts["runs"])
    print(f"\n{counts['runs']} runs with a known cause, {counts['found']} with a finding")
    print(f"first or second fix of the leading finding: {counts['leading']} = {share:.3f} (demanded {DEMANDED})")
    print(f"first or second fix of any shown finding: {counts['any']} = {counts['any'] / max(1, counts['runs']):.3f}")
    return int(share < DEMANDED)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
