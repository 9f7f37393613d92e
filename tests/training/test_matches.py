import torch

from cycleback.training.matches import Matches


def test_a_slower_video_is_matched_at_its_own_pace_and_each_pair_is_warped_once() -> None:
    seconds = torch.linspace(0, 3, 60)
    curve = torch.stack([torch.sin(seconds), torch.cos(2 * seconds), seconds], dim=1)[:, :, None, None]
    matches = Matches([curve, curve.repeat_interleave(2, dim=0)])
    there, back = matches(0, 1), matches(1, 0)
    assert there.dtype == torch.float32 and len(there) == 60 and len(back) == 120
    assert (there - (2 * torch.arange(60) + 0.5)).abs().max() <= 1
    assert torch.equal(back, torch.arange(120) // 2)
    assert matches(0, 1) is there
