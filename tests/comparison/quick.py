"""Settings with which a row is learned in a moment."""

QUICK = (
    "data.frame_size=48",
    "data.frames_per_video=12",
    "encoder.base=small",
    "encoder.train_base=all",
    "encoder.conv.reduce_channels=0",
    "encoder.conv.conv_channels=[16]",
    "encoder.conv.fc_channels=[16]",
    "optimizer.num_updates=8",
    "optimizer.batch_size=2",
    "run.log_every=1",
)
POSES = ("optimizer.num_updates=4", "optimizer.batch_size=2", "encoder.mlp.fc_channels=[16]")
