"""What the report says in words."""

from __future__ import annotations

from dataclasses import dataclass

from evidex.evaluation.report.plan import Plan

ABLATION_WORDS = (
    "EDL: evidential loss. UW: pairs weighted by 1 − u. KL: evidence for wrong answers pulled to zero. RL: mentors' "
    "neighbourhoods kept. UCL: uncertainty aligned with correctness. The paper always trains with KL."
)

LEXICON_WORDS = (
    "Phrases that annotators exchange, by axis; in the noisy split each match is exchanged with probability 0.30, at "
    "most three in a caption. The captions are the first of the measured split in which one phrase of the axis changed."
)


@dataclass(frozen=True)
class FigureWords:
    """A figure's name in the contents, its heading and its caption."""

    short: str
    title: str
    caption: str


def how_to_read(plan: Plan) -> list[str]:
    lines = [
        "R@L is the share of queries with a right answer among the first L, in per cent; RSUM is the sum of the six, "
        "at most 600. Equal scores count as if ordered at random.",
        f"Bold is the best of a column. {_about_spread(len(plan.seeds))}",
        "The noisy split degrades half of the images and exchanges phrases in their captions; clean and noisy "
        "together are queries and gallery.",
        "u (vacuity) is high where little speaks for any answer. It is always shown beside plain baselines on the "
        "same similarities.",
        "Checkpoints are chosen on val; everything here is measured on the split named above.",
        "Blocks marked as the paper's are quoted: CLIP ViT-B/32 on RSICD and RSITMD. They are not comparable with rows "
        "measured here on other data or with another backbone.",
    ]
    if not all(data.path for data in plan.datasets):
        lines.append(
            "This archive is rendered, small and of low resolution, and the trainings are short: the report shows that "
            "everything runs and how results look, not which method is better on real images."
        )
    return lines


def _about_spread(seeds: int) -> str:
    if seeds == 1:
        return "There is only one seed, so nothing is known about the spread, and small differences say nothing."
    return f"A difference within the spread of {seeds} seeds says little."


def comparison_words(plan: Plan) -> str:
    return (
        f"Mean ± standard deviation over the seeds, in per cent. {plan.refinement.name} is {plan.ours} with the most "
        f"uncertain {plan.refinement.ratio:.0%} of its queries refined by RS-TTA. Where a row of ELC departs from the "
        "paper's loss (UCL by vacuity as Eq. 12 prints it, b2 = b3 = 1), its name says so."
    )


def refinement_words(plan: Plan) -> str:
    return (
        f"The same trained models on the noisy split; the most uncertain {plan.refinement.ratio:.0%} of the queries "
        "are asked again in four other forms. RS-TTA varies colour balance and orientation and exchanges phrases "
        "of the field; the generic kind jitters colours, crops, mirrors, and takes synonyms from WordNet."
    )


def uncertainty_words(ours: str) -> str:
    return (
        f"{ours}, mean over the seeds. AUROC, where 0.5 is chance and 1 perfect: of queries without a right answer "
        "among the first 1 or 10 (wrong@1, wrong@10), of degraded against clean queries, of queries whose scene class "
        "was removed from the gallery (class gone), and of queries from another world (out of domain). AURC is the "
        "mean risk over all coverages; lower is better. Vacuity is the paper's u; the other scores come from the same "
        "similarities."
    )


def figure_words(first: str, rival: str) -> dict[str, FigureWords]:
    """By anchor; ``first`` names the model whose queries are shown, ``rival`` the one whose answers stand below."""
    beside = f" Below them the answers of {rival}, same seed." if rival else ""
    return {
        "figure-2": FigureWords(
            "Figure 2",
            "Figure 2: two Dirichlets of equal uncertainty",
            "Equal total evidence gives equal u, whether it lies on the right class (star) or is torn between all: u "
            "alone does not say whether the answer is right, which is why UCL aligns the two.",
        ),
        "figure-3": FigureWords(
            "Figure 3",
            "Figure 3: uncertainty aligned with correctness",
            "What UCL (Eqs. 12 to 14) asks for, on three classes of which the star is right: (a) the evidence of a "
            "right decision shall grow, (b) that of a wrong one shrink.",
        ),
        "figure-4": FigureWords(
            "Figure 4",
            "Figure 4: how images and captions are degraded",
            "Images of the measured split after each step (Eqs. 21 to 24): haze, a gain and a bias for each channel, "
            "readout noise, stripes. The last picture and the lower caption are the very ones of the noisy split.",
        ),
        "figure-5": FigureWords(
            "Figure 5",
            "Figure 5: queries and answers, clean split",
            f"{first}. Green ✓ is right, red ✗ wrong. Of each kind, two queries that were answered right at once and "
            f"two that were not, drawn at random.{beside}",
        ),
        "figure-6": FigureWords(
            "Figure 6",
            "Figure 6: queries and answers, noisy split",
            f"{first}, as Figure 5, with half of all images and captions degraded.",
        ),
        "figure-7": FigureWords(
            "Figure 7",
            "Figure 7: uncertainty of clean and degraded queries",
            f"{first}: histogram and Gaussian density estimate. At AUROC 0.5, degraded queries are no more uncertain "
            "than clean ones.",
        ),
        "figure-8": FigureWords(
            "Figure 8", "Figure 8: the surest and the least sure queries", f"{first}, noisy split."
        ),
        "figure-9": FigureWords(
            "Figures 9/10",
            "Figures 9 and 10: sensitivity to b1, b2 and b3",
            "RSUM when one weight changes and the others stay; the ring marks the setting of all other results. The "
            "KL's weight is epoch / b1, b2 weighs UCL and b3 weighs RL.",
        ),
        "figure-11": FigureWords(
            "Figure 11",
            "Figure 11: how many queries to refine",
            "RSUM on the noisy split over the deferral ratio; mean of the seeds, and their spread as a band.",
        ),
        "risk-coverage": FigureWords(
            "Risk–coverage",
            "Risk–coverage: what is wrong if only the surest queries are answered",
            f"{first}; above the clean split, below the noisy one. A miss at R@1 counts as risk. The dashed line is "
            "the risk of answering everything, which a worthless score keeps throughout.",
        ),
    }
