//! Counter-based random numbers: draw `i` of a stream is a function of the seed, the stream and `i`, so results depend
//! neither on the order of draws nor on the number of threads.

/// The mixing function of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
const fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A stream of draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream(u64);

impl Stream {
    /// Returns the root stream of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Stream {
        Stream(mix(seed.wrapping_add(STEP)))
    }

    /// Returns one of its substreams.
    #[must_use]
    pub fn of(self, number: u64) -> Stream {
        Stream(mix(self.0 ^ mix(number.wrapping_add(1).wrapping_mul(STEP))))
    }

    /// Returns draw `i`: 64 uniform bits.
    #[must_use]
    pub fn bits(self, i: u64) -> u64 {
        mix(self.0 ^ mix(i.wrapping_mul(STEP).wrapping_add(STEP)))
    }

    /// Returns draw `i`, uniform in the open interval from 0 to 1.
    #[must_use]
    pub fn unit(self, i: u64) -> f64 {
        // Signed, since that conversion is one instruction.
        ((self.bits(i) >> 11) as i64 as f64 + 0.5) * (1.0 / (1u64 << 53) as f64)
    }

    /// Returns draw `i`, a uniform integer from 0 to below `n`.
    #[must_use]
    pub fn below(self, i: u64, n: u64) -> u64 {
        ((u128::from(self.bits(i)) * u128::from(n)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_uniform_and_streams_differ() {
        let streams: Vec<Stream> = (0..100).map(|n| Stream::new(7).of(n)).collect();
        let draws = || streams.iter().flat_map(|s| (0..1000).map(|i| s.unit(i)));
        let mean = draws().sum::<f64>() / 1e5;
        let square = draws().map(|x| x * x).sum::<f64>() / 1e5;
        // Three standard errors of 100,000 draws.
        assert!((mean - 0.5).abs() < 3.0 * 0.2887 / 316.0, "{mean}");
        assert!((square - 1.0 / 3.0).abs() < 3.0 * 0.298 / 316.0, "{square}");
        let together = (0..1000).map(|i| (streams[0].unit(i) - 0.5) * (streams[1].unit(i) - 0.5)).sum::<f64>() / 1e3;
        assert!(together.abs() < 3.0 * (1.0 / 12.0) / 31.6, "{together}");
    }

    #[test]
    fn below_gives_exactly_the_numbers_in_range() {
        let stream = Stream::new(1);
        let mut seen = [0u32; 5];
        (0..5000).for_each(|i| seen[stream.below(i, 5) as usize] += 1);
        assert!(seen.iter().all(|n| (900..1100).contains(n)), "{seen:?}");
    }
}
