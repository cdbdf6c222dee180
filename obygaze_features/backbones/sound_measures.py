"""`sound`: compute classical descriptors of sound, without weights.

Measured fifty times a second on mono samples at 16 kHz, and averaged over each part of the clip. Parts end
half-way between the sampled frames, so that a row is of the sound around its frame. Measures and sources:

- log_mel: logarithm of the power in 64 bands from 60 to 7800 Hz, equally wide in mel (O'Shaughnessy 1987).
- loudness: K-weighted loudness of the part in LUFS, of one channel, without gates (ITU-R BS.1770-4).
- flux: mean rise of the bands from one step to the next (Dixon 2006).
- flatness: geometric mean of the power spectrum over its arithmetic mean (Johnston 1988).
- harmonicity: largest normalised autocorrelation at 75 to 500 Hz (Boersma 1993).
- voiced: share of steps whose harmonicity is above .45, Praat's threshold, and that aren't silent.
"""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft, signal, sparse

from obygaze_features.backbones.backbone import Backbone, Hearing, descriptor

RATE = 16_000
"""Samples a second."""
STEPS_A_SECOND = 50
BANDS = 64
"""Bands of the spectrum, from `LOWEST_HZ` to `HIGHEST_HZ`."""
LOWEST_HZ = 60.0
HIGHEST_HZ = 7800.0
WINDOW = 512
"""Samples of a spectrum, 32 ms."""
BINS_OF_BANDS = slice(round(LOWEST_HZ * WINDOW / RATE), round(HIGHEST_HZ * WINDOW / RATE) + 1)
"""Bins of a spectrum within the bands."""
PITCH_WINDOW = 768
"""Samples of an autocorrelation, 48 ms: three periods of 75 Hz."""
PITCH_FFT = 1024
"""Samples of the Fourier transform by which an autocorrelation is computed."""
LAGS = slice(RATE // 500, RATE // 75 + 1)
"""Lags of an autocorrelation, in samples, of pitches from 500 down to 75 Hz."""
VOICED = 0.45
"""Harmonicity above which a step is voiced."""
SILENT_LUFS = -60.0
"""Loudness up to which a step is silent."""
BLOCKS_A_SECOND = 10
"""Values of `weighted_squares` a second, for `gated_loudness`."""
GATE_LUFS = -70.0
"""Loudness up to which a block does not count."""
FLOOR = 1e-10
"""Power that is added before logarithms and divisions, so that silence has finite ones: -100 dB of full
scale."""
HANN_MEAN_SQUARE = 0.375
"""Mean square of a Hann window, by which it reduces the power of a signal."""

FEATURES = (*(f"log_mel_{k}" for k in range(BANDS)), "loudness", "flux", "flatness", "harmonicity", "voiced")

# ITU-R BS.1770-4, tables 1 and 2: the two filters as analogue prototypes, so that they fit any rate
# (frequency in Hz, Q, gain in dB; of the high pass the gain is none).
_SHELF = (1681.974450955533, 0.7071752369554196, 3.999843853973347)
_HIGH_PASS = (38.13547087602444, 0.5003270373238773)
_LINEAR_EXPONENT = 0.4996667741545416
"""Power of the shelf's gain by which the linear term of its numerator is multiplied."""


def sound(n_frames: int = 32, *, track: str = "") -> Backbone:
    """Build the backbone that measures sound: its spectrum, loudness and voices, without a network.

    Parameters
    ----------
    n_frames
        Sampled frames of a clip; a row of features is of the sound around each of them.
    track
        Language (`fra`) or number of the sound track; empty is the one that players choose.
    """
    return descriptor(
        "sound",
        n_frames,
        FEATURES,
        prepare,
        encode,
        resize=f"{RATE} samples a second, mono, by libswresample",
        crop="parts between the midpoints of the sampled frames",
        order="mono, resample",
        citation="ITU-R BS.1770-4; O'Shaughnessy 1987; Dixon 2006; Johnston 1988; Boersma 1993",
        libraries=("scipy",),
        hears=Hearing(rate=RATE, track=track, measure=measure, steps_a_second=STEPS_A_SECOND),
    )


def prepare(parts: NDArray[np.float32]) -> NDArray[np.float32]:
    """Average the measures of each part of a clip over its L steps of 20 ms: `[F, L, D]` to `[F, D]`.

    The D columns are those of `FEATURES`. Loudness itself cannot be averaged: in `parts`, its column holds
    mean squares of samples, as `measure` gives them. Their mean is converted to LUFS here.

    Parameters
    ----------
    parts
        Measures of the steps of each part. Parts differ in length: steps after a part's end are NaN.
    """
    features = np.asarray(np.nanmean(parts, axis=1, dtype=np.float64))
    loudness_column = FEATURES.index("loudness")
    mean_squares = features[:, loudness_column]
    features[:, loudness_column] = _lufs(mean_squares)
    return np.asarray(features, np.float32)


def encode(batch: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
    """Return measures `[B, F, 69]`, the columns of `FEATURES`, as `frames`, and their mean as `pooled`."""
    return {"frames": batch, "pooled": batch.mean(axis=1, dtype=np.float64).astype(np.float32)}


def measure(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """Compute the measures of samples `[N]` at 16 kHz for each step of 20 ms: `[N // 320, D]`, as `FEATURES`.

    The column of the loudness holds the mean square of the K-weighted samples, which can be averaged over
    steps; `prepare` converts the average to loudness.
    """
    samples_per_step = RATE // STEPS_A_SECOND
    power = _power_spectra(samples)
    band_power = (_mel_filters() @ power.T).T  # [steps, BANDS]; a sparse matrix has to stand first
    log_mel = np.log(band_power + FLOOR)  # silence too has a finite logarithm

    # Flux: how much the bands rise.
    changes = np.diff(log_mel, axis=0, prepend=log_mel[:1])  # from the step before
    rises = np.maximum(changes, 0)
    flux = rises.mean(axis=1)

    mean_squares = weighted_squares(samples, samples_per_step)
    harmonic = harmonicity(samples)
    is_audible = _lufs(mean_squares) > SILENT_LUFS
    is_voiced = (harmonic > VOICED) & is_audible

    # In the order of `FEATURES`.
    columns = [log_mel, mean_squares, flux, _flatness(power), harmonic, is_voiced]
    return np.column_stack(columns).astype(np.float32)


def _power_spectra(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the power of each frequency around every step of 20 ms, `[S, WINDOW // 2 + 1]`.

    A spectrum is of the 32 ms around the middle of a step. Its power is divided by that of a sine of full
    scale.
    """
    windows = _windows(samples, WINDOW) * _hann(WINDOW)
    spectra = fft.rfft(windows, axis=1)
    # The mean square of a full sine is 1/2, and the window reduces it. Transforms are sums over the window.
    power_of_full_sine = HANN_MEAN_SQUARE * WINDOW * WINDOW / 2
    return np.asarray(np.square(np.abs(spectra)) / power_of_full_sine, dtype=np.float32)


def _flatness(power: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the spectral flatness of power spectra `[S, bins]`, `[S]`: 1 for white noise, near 0 for a tone.

    It is the geometric mean of the power within the bands divided by its arithmetic mean.
    """
    power_in_bands = power[:, BINS_OF_BANDS] + FLOOR  # of silence too it is above 0
    geometric_mean = np.exp(np.log(power_in_bands).mean(axis=1))
    flatness: NDArray[np.float32] = geometric_mean / power_in_bands.mean(axis=1)
    return flatness


def weighted_squares(samples: NDArray[np.float32], hop: int = RATE // BLOCKS_A_SECOND) -> NDArray[np.float64]:
    """Return the mean square of samples `[N]` at 16 kHz over each `hop` of them: `[N // hop]`.

    The samples are K-weighted first: filtered so that frequencies count as they are heard (ITU-R BS.1770-4).
    A remainder of fewer than `hop` samples is left out.
    """
    n_hops = len(samples) // hop
    whole_hops = samples[: n_hops * hop].astype(np.float64)
    weighted = signal.sosfilt(k_weighting(RATE), whole_hops)
    return np.asarray(np.square(weighted).reshape(-1, hop).mean(axis=1))


def gated_loudness(mean_squares: NDArray[Any]) -> float:
    """Compute the loudness of a sound in LUFS, without its silent parts (ITU-R BS.1770-4, EBU R 128).

    Blocks of .4 s, four values each, begin every tenth of a second. A block counts if it is above an absolute
    gate of -70 LUFS, and above a relative one: 10 LU below the mean of the blocks above the absolute gate. If
    none counts, the loudness is -70 LUFS.

    Parameters
    ----------
    mean_squares
        Mean squares of the K-weighted samples of one channel, ten a second, `[L]`, as `weighted_squares`
        gives them.
    """
    n_in_block = min(4, len(mean_squares))
    values_of_blocks = np.lib.stride_tricks.sliding_window_view(mean_squares, n_in_block)
    blocks = values_of_blocks.mean(axis=1)
    audible_blocks = blocks[_lufs(blocks) > GATE_LUFS]
    if not len(audible_blocks):
        return GATE_LUFS
    relative_gate = _lufs(audible_blocks.mean()) - 10
    counted_blocks = audible_blocks[_lufs(audible_blocks) > relative_gate]
    return float(_lufs(counted_blocks.mean()))


def harmonicity(samples: NDArray[np.float32]) -> NDArray[np.float64]:
    """Compute the largest normalised autocorrelation of every step at 75 to 500 Hz, 0 to 1.

    It is 1 for a periodic signal. A Hann window alone makes the autocorrelation fall with the lag, so that of
    the windowed signal is divided by that of the window (Boersma 1993, equation 9). Both are first divided by
    their value at lag 0, which is the power.
    """
    window = _hann(PITCH_WINDOW)
    windows = _windows(samples, PITCH_WINDOW)
    windowed_signal = (windows - windows.mean(axis=1, keepdims=True)) * window
    signal_autocorrelation = _autocorrelation(windowed_signal)  # [S, lags]
    window_autocorrelation = _autocorrelation(window)  # [lags]

    signal_power = signal_autocorrelation[:, :1] + FLOOR
    window_power = window_autocorrelation[0]
    # `LAGS` are those from 500 Hz down to 75 Hz.
    relative_signal = signal_autocorrelation[:, LAGS] / signal_power
    relative_window = window_autocorrelation[LAGS] / window_power
    normalised = relative_signal / relative_window
    return np.asarray(np.clip(normalised.max(axis=1), 0.0, 1.0), np.float64)


def _autocorrelation(values: NDArray[Any]) -> NDArray[Any]:
    """Return the autocorrelation along the last axis, at lags of 0, 1, ... samples, `[..., PITCH_FFT]`.

    At a lag it is the sum of the products of all values with the values that come this many samples later.
    The inverse Fourier transform of the power spectrum gives all of these sums at once.

    A Fourier transform takes its input for periodic: after the last value it would come to the first again.
    So zeros are put behind the values, up to `PITCH_FFT` of them, and products across the end are 0.
    """
    spectra = fft.rfft(values, PITCH_FFT, axis=-1)
    return np.asarray(fft.irfft(np.square(np.abs(spectra)), axis=-1))


def k_weighting(rate: int) -> NDArray[np.float64]:
    """Make the K-weighting filters of ITU-R BS.1770-4 for a rate, as second-order sections `[2, 6]`.

    The first row is a shelf, which raises high frequencies as the head does; the second one is a high pass. A
    row has three coefficients of the numerator, then three of the denominator, whose first one is 1.

    At 48 kHz they are the tables of the recommendation. It has no formula for other rates, so the filters are
    made from analogue ones that give these tables, by the bilinear transform (`_digital_polynomial`).

    Parameters
    ----------
    rate
        Samples per second.
    """
    # With s in units of the corner frequency, the analogue shelf is
    # (gain s^2 + gain^e s / q + 1) / (s^2 + s / q + 1), where e is `_LINEAR_EXPONENT`.
    shelf_frequency, shelf_q, shelf_gain_db = _SHELF
    gain = 10 ** (shelf_gain_db / 20)
    numerator = _digital_polynomial(
        rate, shelf_frequency, shelf_q, square=gain, linear=gain**_LINEAR_EXPONENT
    )
    denominator = _digital_polynomial(rate, shelf_frequency, shelf_q)
    shelf = np.array([*numerator, *denominator]) / denominator[0]

    # The analogue high pass has the denominator s^2 + s / q + 1 too. The recommendation gives the digital one
    # the numerator 1, -2, 1, whatever the scale of the denominator.
    pass_frequency, pass_q = _HIGH_PASS
    denominator = _digital_polynomial(rate, pass_frequency, pass_q)
    high_pass = np.array([1, -2, 1, *(np.array(denominator) / denominator[0])])

    return np.array([shelf, high_pass])


def _digital_polynomial(
    rate: int, frequency: float, q: float, *, square: float = 1.0, linear: float = 1.0
) -> list[float]:
    """Convert the numerator or denominator of an analogue filter to that of a digital one.

    The analogue polynomial is `square * s^2 + linear * s / q + 1`, where s is in units of the corner
    frequency. The bilinear transform sets `s = (1 - 1/z) / (k (1 + 1/z))`. This k keeps the corner frequency
    where it is. The result is multiplied by `k^2 (1 + 1/z)^2`, so that it is a polynomial in 1/z.

    Parameters
    ----------
    rate
        Samples per second.
    frequency
        The corner frequency in Hz.
    q
        The quality factor.
    square, linear
        Factors of the terms with s^2 and s.

    Returns
    -------
    list of float
        The coefficients of 1, 1/z and 1/z^2.
    """
    k = float(np.tan(np.pi * frequency / rate))
    k_squared = k * k
    linear_term = linear * k / q
    return [square + linear_term + k_squared, 2 * (k_squared - square), square - linear_term + k_squared]


def _windows(samples: NDArray[np.float32], size: int) -> NDArray[np.float32]:
    """Cut a window of `size` samples around the middle of every step of 20 ms, `[N // 320, size]`.

    Before and after the samples there is silence.
    """
    samples_per_step = RATE // STEPS_A_SECOND
    n_steps = len(samples) // samples_per_step
    n_before = size // 2 - samples_per_step // 2  # samples of the first window before the first step
    padded = np.pad(samples, (n_before, size))
    windows_at_samples = np.lib.stride_tricks.sliding_window_view(padded, size)
    return windows_at_samples[: n_steps * samples_per_step : samples_per_step]


def _hann(size: int) -> NDArray[np.float32]:
    """Return a periodic Hann window of `size` samples."""
    return np.asarray(signal.windows.hann(size, sym=False), np.float32)


def _lufs(mean_square: NDArray[Any]) -> NDArray[np.float64]:
    """Return the loudness of K-weighted mean squares in LUFS (ITU-R BS.1770-4, equation 2).

    A little power is added, so that silence has a finite loudness.
    """
    power = np.asarray(mean_square, np.float64) + FLOOR
    return np.asarray(-0.691 + 10 * np.log10(power))


@cache
def _mel_filters() -> Any:
    """Make the triangular filters of 64 bands from 60 to 7800 Hz, a sparse `[BANDS, WINDOW // 2 + 1]`.

    A row has the weight of each frequency of a spectrum in a band. Bands are equally wide in mel, which is
    2595 log10(1 + f / 700). The triangle of a band begins at the peak of the one before and ends at that of
    the next.

    The matrix is sparse because numpy multiplies dense ones by several threads, and those of the worker
    processes would wait for each other.
    """
    # Corners of the triangles, equally far apart in mel: a band has three of them.
    lowest = float(2595 * np.log10(1 + LOWEST_HZ / 700))
    highest = float(2595 * np.log10(1 + HIGHEST_HZ / 700))
    mels = np.linspace(lowest, highest, BANDS + 2)
    corners_hz = 700 * (10 ** (mels[:, None] / 2595) - 1)  # [BANDS + 2, 1]
    begins = corners_hz[:-2]
    peaks = corners_hz[1:-1]
    ends = corners_hz[2:]

    frequencies = np.arange(WINDOW // 2 + 1) * RATE / WINDOW  # in Hz, of the bins of a spectrum
    rising = (frequencies - begins) / (peaks - begins)  # [BANDS, bins]; 0 at the begin, 1 at the peak
    falling = (ends - frequencies) / (ends - peaks)  # 1 at the peak, 0 at the end
    triangles = np.maximum(np.minimum(rising, falling), 0)
    return sparse.csr_array(triangles.astype(np.float32))
