"""numpy: matrix products, FFT, solving, sorting; numbers are printed as far as every order of summation gives them."""

import numpy as np

n = 200
a = (np.arange(n * n) * 7 % 13 - 6.0).reshape(n, n)
b = (np.arange(n * n) * 5 % 11 - 5.0).reshape(n, n)
print(int((a @ b).sum()), int((a.astype(np.int64) @ b.astype(np.int64)).sum()), (a @ b).dtype)
x = np.sin(np.arange(4096))
spectrum = np.fft.fft(x)
print(np.abs(spectrum).argmax(), np.allclose(np.fft.ifft(spectrum).real, x), f"{np.abs(spectrum).max():.9f}")
m = np.eye(n) * n + np.sin(a)
solution = np.linalg.solve(m, np.ones(n))
print(np.allclose(m @ solution, 1), f"{solution.sum():.9f}", f"{np.linalg.norm(solution):.9f}")
generator = np.random.default_rng(7)
values = generator.integers(0, 1000, 10000)
print(values[:5], np.sort(values)[::2500], np.unique(values).size)
single = np.linspace(0, 1, 1001, dtype=np.float32)
print(f"{np.exp(single).sum():.3f}", np.float16(1) / 3, (single > 0.5).sum(), np.cumsum(np.arange(10))[-1])
