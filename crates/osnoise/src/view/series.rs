//! Noise over time in a fixed number of slices, and its spectrum.

use std::collections::BTreeMap;

use realfft::RealFftPlanner;

/// Noise in time slices. When the time exceeds the last slice, slices double in length.
pub struct Series<const N: usize> {
    slice: u64,
    sums: Vec<f64>,
}

/// The shortest slice, ns.
const SHORTEST: u64 = 50_000;

impl<const N: usize> Default for Series<N> {
    fn default() -> Series<N> {
        Series { slice: SHORTEST, sums: vec![0.0; N] }
    }
}

impl<const N: usize> Series<N> {
    /// Adds a detour, split over the slices that it covers.
    pub fn add(&mut self, start: u64, length: u64) {
        let end = start.saturating_add(length);
        while end / self.slice >= N as u64 {
            for i in 0..N {
                let pair = |j: usize| self.sums.get(j).copied().unwrap_or_default();
                self.sums[i] = pair(2 * i) + pair(2 * i + 1);
            }
            self.slice = self.slice.saturating_mul(2);
        }
        let mut from = start;
        while from < end {
            let slice = from / self.slice;
            let until = end.min((slice + 1).saturating_mul(self.slice));
            self.sums[slice as usize] += (until - from) as f64;
            from = until;
        }
    }

    /// Returns the length of a slice, ns, and the noise in each slice up to a time.
    pub fn until(mut self, end: u64) -> (u64, Vec<f64>) {
        let used = (end.div_ceil(self.slice) as usize).min(N);
        self.sums.truncate(used);
        (self.slice, self.sums)
    }
}

/// Maximum number of points of a spectrum.
const POINTS: usize = 400;

/// Returns the mean power of the cores by frequency, normalised to the largest value. Adjacent frequencies are merged
/// into the largest.
pub fn spectrum<const N: usize>(cores: &BTreeMap<u32, Series<N>>, duration: u64) -> Vec<(f64, f64)> {
    // All cores use the longest slices of any core.
    let Some(slice) = cores.values().map(|series| series.slice).max() else { return Vec::new() };
    let length = (duration.div_ceil(slice) as usize).min(N);
    if length < 16 {
        return Vec::new();
    }
    let joined = |series: &Series<N>| -> Vec<f64> {
        let join = (slice / series.slice) as usize;
        series.sums.chunks(join).map(|part| part.iter().sum()).collect()
    };
    normalised(&mut cores.values().map(joined), length, slice)
}

/// As [`spectrum`], from each core's noise in at most `length` slices of `slice` ns. Not generic: transforms are compiled once.
fn normalised(cores: &mut dyn Iterator<Item = Vec<f64>>, length: usize, slice: u64) -> Vec<(f64, f64)> {
    let forward = RealFftPlanner::<f64>::new().plan_fft_forward(length);
    let mut power = vec![0.0; length / 2 + 1];
    for mut input in cores {
        input.resize(length, 0.0);
        let mean = input.iter().sum::<f64>() / length as f64;
        input.iter_mut().for_each(|value| *value -= mean);
        let mut output = forward.make_output_vec();
        // The lengths are those of the plan.
        if forward.process(&mut input, &mut output).is_ok() {
            power.iter_mut().zip(&output).for_each(|(sum, value)| *sum += value.norm_sqr());
        }
    }
    let most = power.iter().copied().fold(0.0, f64::max);
    if most <= 0.0 {
        return Vec::new();
    }
    let step = 1e9 / (length as f64 * slice as f64);
    let group = power.len().div_ceil(POINTS);
    let largest = |(g, part): (usize, &[f64])| {
        let (at, value) = part.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1))?;
        Some(((g * group + at + 1) as f64 * step, value / most))
    };
    power[1..].chunks(group).enumerate().filter_map(largest).collect()
}
