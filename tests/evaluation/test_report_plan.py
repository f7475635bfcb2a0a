from __future__ import annotations

from pathlib import Path

import pytest

from evidex.errors import ConfigError
from evidex.evaluation.report.jobs import Start, Work, expand
from evidex.evaluation.report.plan import Plan, load_plan, training_config

REPOSITORY = Path(__file__).resolve().parents[2]
MODEL = '[[model]]\nname = "ELC0"\n'


def plan_of(tmp_path: Path, content: str) -> Plan:
    path = tmp_path / "plan.toml"
    path.write_text(content)
    return load_plan(path)


def expanded(plan: Plan, start: Start | None = None) -> Work:
    return expand(plan, Path("data"), "d1", start)


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("", "[[model]]"),
        ("colour = 1\n" + MODEL, "colour"),
        (MODEL + "shape = 2", "shape"),
        (MODEL + "[dataset]\nfolder = 'x'", "folder"),
        (MODEL + "[start]\nepochs = 3", "epochs"),
        (MODEL + "training.loss.objetive = 'elc'", "objetive"),
        (MODEL + "training.loss.objective = 'softmax'", "softmax"),
        (MODEL + "[training.train]\nepochs = 'many'", "many"),
        (MODEL + "[start]\ntraining.encoder.size = 3", "size"),
        (MODEL + "[[ablation.row]]\nname = 'x'\ntraining.loss.uw = true", "uw"),
        (MODEL + "[[ablation.row]]\ntraining.loss.kl = true", "no name"),
        (MODEL + MODEL, "two models"),
        (MODEL + "[[ablation.row]]\nname = 'All'", "'All'"),
        ("seeds = []\n" + MODEL, "seeds is empty"),
        ("seeds = [-1]\n" + MODEL, "seeds = -1; give 0 or more"),
        (MODEL + "training.loss.temperature = -1\ntraining.loss.b1 = 0", "loss.temperature = -1.0; give"),
        ("training.loss.b1 = 0\n" + MODEL, "loss.b1 = 0.0; give a number above 0"),
        (MODEL + "[sensitivity]\nb1 = [1.0, 0]", "sensitivity.b1 = 0.0; give a number above 0"),
        (MODEL + "[[ablation.row]]\nname = 'x'\ntraining.train.epochs = 0", "train.epochs = 0; give"),
        (MODEL + "[start]\ntraining.encoder.dim = 2147483648", "encoder.dim = 2147483648; give 1 to 65536"),
        (MODEL + "[noise]\nseverity = nan", "noise.severity = nan; give 0 or more"),
        (MODEL + "[dataset]\nscene_size = 1", "dataset.scene_size = 1; give"),
        ("output = ''\n" + MODEL, "output is empty"),
        ("seeds = 3\n" + MODEL, "expected a list"),
        ("ours = 'EDL'\n" + MODEL, "EDL"),
        ("rival = 'ELC0'\n" + MODEL, "rival = 'ELC0' is no other model"),
        (MODEL + "[[further]]\nscene_size = 1", "further[0].scene_size = 1; give"),
        (MODEL + "[refinement]\nratio = 1.5", "ratio"),
        (MODEL + "[refinement]\nname = 'ELC0'", "refined row"),
        (MODEL + "path = 'm'\ntraining.loss.kl = true", "both"),
        (MODEL + "path = 'm'\n[sensitivity]\nb1 = [1.0]", "cannot be ablated"),
        (MODEL + "tokenizer = 't'", "has a tokenizer and no path"),
        (MODEL + "path = 'm.pt'\ntokenizer = 't'\nactivation = 'relu'", "relu"),
        ("jobs = -1\n" + MODEL, "jobs"),
        ("base = 'nowhere.toml'\n" + MODEL, "nowhere.toml"),
        ("seeds = [0", "TOML"),
    ],
)
def test_a_mistake_in_the_plan_is_named_in_one_line(tmp_path: Path, content: str, word: str) -> None:
    with pytest.raises(ConfigError) as caught:
        plan_of(tmp_path, content)
    assert word in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent\.toml"):
        load_plan(tmp_path / "absent.toml")


def test_changes_go_on_top_of_training_and_of_a_base_file(tmp_path: Path) -> None:
    base = tmp_path / "base.toml"
    base.write_text("[loss]\nb1 = 7.0\nb2 = 8.0\n[train]\nepochs = 3\n")
    other = tmp_path / "other.toml"
    other.write_text("[loss]\nb2 = 5.0\n")
    plan = plan_of(
        tmp_path,
        f"base = '{base}'\n[training.loss]\nb2 = 9.0\n{MODEL}training.loss.b3 = 4.0\n"
        f"[[model]]\nname = 'other'\nconfig = '{other}'\n",
    )
    ours = training_config(plan, plan.our_model())
    assert (ours.loss.b1, ours.loss.b2, ours.loss.b3, ours.train.epochs) == (7.0, 9.0, 4.0, 3)
    assert training_config(plan, plan.model[1]).loss.b2 == 5.0


def test_rows_that_need_the_same_model_share_it(tmp_path: Path) -> None:
    plan = plan_of(
        tmp_path,
        "seeds = [0, 1]\n" + MODEL + "[[ablation.row]]\nname = 'no KL'\ntraining.loss.kl = false\n"
        "[sensitivity]\nseeds = [1]\nb1 = [10.0, 40.0]\nb2 = [2.0]\n",
    )
    work = expanded(plan)
    ours = work.comparison["ELC0"]
    assert work.ablation["All"] == ours
    assert work.sensitivity["b1"][40.0] == (ours[1],)
    assert list(work.sensitivity["b2"]) == [1.0, 2.0]  # the value of ours is added
    assert len(work.jobs) == 2 + 2 + 1 + 1
    assert {measure.name for measure in work.jobs[ours[0]].measures} == {"clean", "noisy", "generic"}


def test_a_job_is_named_by_what_shapes_its_result(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "seeds = [0]\n" + MODEL)
    (name,) = expanded(plan).comparison["ELC0"]
    assert expand(plan, Path("elsewhere"), "d1", None).comparison["ELC0"] == (name,)
    renamed = plan_of(tmp_path, "seeds = [0]\ntitle = 'x'\nours = 'mine'\n[[model]]\nname = 'mine'\n")
    assert expanded(renamed).comparison["mine"] == (name,)
    others = {
        expand(plan, Path("data"), "d2", None).comparison["ELC0"],
        expanded(plan, Start("s1", Path("start"), "convnet", True)).comparison["ELC0"],
        expanded(plan_of(tmp_path, "seeds = [1]\n" + MODEL)).comparison["ELC0"],
        expanded(plan_of(tmp_path, "seeds = [0]\n" + MODEL + "training.train.epochs = 3")).comparison["ELC0"],
    }
    assert len(others) == 4
    assert (name,) not in others


def test_a_start_gives_towers_and_mentors_unless_others_are_named(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "seeds = [0]\n" + MODEL + "training.mentors.text = 'gte'\n")
    work = expanded(plan, Start("s1", Path("start"), "convnet", True))
    config = next(iter(work.jobs.values())).config
    assert config is not None
    assert (config.encoder.kind, config.encoder.source) == ("towers", "start")
    assert (config.mentors.image, config.mentors.text) == ("start/convnet.safetensors", "gte")


def test_the_sample_plan_covers_the_paper() -> None:
    plan = load_plan(REPOSITORY / "configs" / "benchmark_sample.toml")
    work = expanded(plan)
    assert {"ELC0", "InfoNCE", "VSE++", "Poly"} == set(work.comparison)
    assert all(len(digests) >= 3 for digests in [*work.comparison.values(), *work.ablation.values()])
    assert set(work.sensitivity) == {"b1", "b2", "b3"}
    assert all(len(points) == 3 for points in work.sensitivity.values())
    losses = [job.config.loss for job in work.jobs.values() if job.config is not None]
    assert {loss.objective for loss in losses} == {"elc", "infonce", "vsepp", "poly"}
    assert any(not loss.kl for loss in losses)
