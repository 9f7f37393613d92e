"""What the page shows of single videos: similarity as training goes on, a map of frames, film strips."""

from dataclasses import dataclass

from cycleback.applications.plots import draw_similarity, shared_events
from cycleback.comparison.examples import Example, choose_videos, find_example, strips_html
from cycleback.comparison.folder import read_json
from cycleback.comparison.pictures import map_picture
from cycleback.comparison.plan import Plan
from cycleback.comparison.rows import Place, load_row_encoder, untrained_encoder
from cycleback.comparison.snapshots import load_snapshots
from cycleback.comparison.thumbnails import Thumbnails
from cycleback.data import FrameCache
from cycleback.embeddings import EmbeddingSet
from cycleback.models import Encoder
from cycleback.runs import embed_videos, load_encoder

MAP_VIDEOS = 12


@dataclass(frozen=True)
class Scenes:
    """Pictures and what they are of.

    Attributes:
        pair: the two held-out videos of the similarity matrices.
        snapshots: updates the matrices are of; empty for a row that was not learned.
        similarity: PNG.
        frame_map: PNG.
        example: matched moments.
        strips: the example as HTML with pictures; "" where frames are not pictures.
    """

    pair: tuple[str, str]
    snapshots: list[int]
    similarity: bytes
    frame_map: bytes
    example: Example
    strips: str


def draw_scenes(plan: Plan, place: Place, best: str) -> Scenes:
    """Pictures of the best row, beside rows that learned nothing."""
    titles = {method.name: plan.title(method) for method in plan.methods}
    rows = dict.fromkeys([best, "imagenet", "time"])
    sets = {name: EmbeddingSet.load(place.folder.embeddings(name)) for name in rows}
    names = choose_videos(sets[best])
    pair = (names[0], names[1])
    stages = _stages(plan, place, best, pair)
    thumbs = _thumbnails(plan, place) if plan.is_pictures else None
    example = find_example({name: sets[name] for name in dict.fromkeys([best, "time"])}, names)
    maps = {titles[name]: sets[name] for name in dict.fromkeys([best, "imagenet"])}
    same = sets[best].of_action(sets[best].action(names[0])).names[:MAP_VIDEOS]
    return Scenes(
        pair=pair,
        snapshots=list(stages) if -1 not in stages else [],
        similarity=draw_similarity(
            {_stage_title(step): (found[pair[0]], found[pair[1]]) for step, found in stages.items()},
            events=shared_events(*(sets[best].events(name) for name in pair)),
            size=(3.0 * len(stages), 2.8),  # inches
        ),
        frame_map=map_picture(maps, same, thumbs),
        example=example,
        strips=strips_html(example, titles, thumbs) if thumbs is not None else "",
    )


def _stages(plan: Plan, place: Place, best: str, pair: tuple[str, str]) -> dict[int, EmbeddingSet]:
    """Update -> embeddings of the pair; only -1 for a row that was not learned."""
    method = next(method for method in plan.methods if method.name == best)
    encoder = load_row_encoder(method, plan, place)
    if encoder is None or not method.is_trained:
        return {-1: EmbeddingSet.load(place.folder.embeddings(best)).subset(list(pair))}
    recipe = plan.recipes[best]
    start = recipe.run.start_from
    encoders: dict[int, Encoder] = {0: load_encoder(start) if start else untrained_encoder(recipe, plan)}
    encoders |= load_snapshots(place.folder.snapshots(best))
    learned = read_json(place.folder.training(best)) or {}
    encoders[learned.get("updates", recipe.optimizer.num_updates)] = encoder
    videos = plan.held_out.subset(pair)
    return {
        step: embed_videos(found, videos, device=place.device, cache=place.cache)
        for step, found in encoders.items()
    }


def _stage_title(step: int) -> str:
    return (
        "not trained"
        if step < 0
        else "before training"
        if step == 0
        else f"after {step} update{'s' * (step > 1)}"
    )


def _thumbnails(plan: Plan, place: Place) -> Thumbnails:
    data = plan.recipes["random"].data
    return Thumbnails(
        plan.held_out, FrameCache(place.cache, size=(data.frame_size, data.frame_size), fit=data.fit)
    )
