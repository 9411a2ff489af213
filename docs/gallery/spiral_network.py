"""
A network with MindSpore's interface
====================================

Two spirals are told apart by three dense layers. A step of training, forward, backward and Adam's update, is one
compiled program.
"""

import matplotlib.pyplot as plt
import numpy as np

import nbgrad as nb
from nbgrad import Tensor, nn

nb.set_seed(1)
rng = np.random.default_rng(1)


def spirals(count):
    """Points on two arms, and the arm of each."""
    arm = rng.integers(0, 2, count)
    t = rng.uniform(0.3, 3.0, count)
    angle = 2.2 * t + np.pi * arm
    points = np.column_stack([t * np.cos(angle), t * np.sin(angle)]) + 0.06 * rng.standard_normal((count, 2))
    return points.astype(np.float32), arm.astype(np.int32)


net = nn.SequentialCell(nn.Dense(2, 32), nn.Tanh(), nn.Dense(32, 32), nn.Tanh(), nn.Dense(32, 2))
optimizer = nn.Adam(net.trainable_params(), learning_rate=0.01)
step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.CrossEntropyLoss()), optimizer)

points, arms = spirals(1000)
losses = []
for _ in range(600):
    chosen = rng.integers(0, 1000, 128)
    losses.append(float(step(Tensor(points[chosen]), Tensor(arms[chosen]))))

# %%
# Points that the network has not seen:

others, theirs = spirals(1000)
right = np.mean(net(Tensor(others)).asnumpy().argmax(axis=1) == theirs)
print(f"loss {losses[0]:.2f} at first, {np.mean(losses[-20:]):.3f} at the end; {right:.1%} right")
assert right > 0.97

axis = np.linspace(-3.3, 3.3, 120, dtype=np.float32)
plane = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
scores = net(Tensor(plane)).asnumpy()
figure, (left, axis_right) = plt.subplots(1, 2, figsize=(8, 3.5))
left.semilogy(losses)
left.set_xlabel("step")
left.set_ylabel("loss")
axis_right.pcolormesh(axis, axis, np.tanh(scores[:, 1] - scores[:, 0]).reshape(120, 120), cmap="coolwarm", alpha=0.5)
axis_right.scatter(*others.T, c=theirs, s=3, cmap="coolwarm")
figure.tight_layout()
plt.show()
