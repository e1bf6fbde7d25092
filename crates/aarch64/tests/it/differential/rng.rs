//! Seeded randomness.

/// SplitMix64: small, good enough, the same on all hosts.
pub struct Rng(u64);

impl Rng {
    /// Returns a generator whose sequence depends only on the seed and the text.
    pub fn new(seed: u64, text: &str) -> Rng {
        // FNV-1a.
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
        Rng(seed ^ hash)
    }

    /// 64 random bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
    /// Returns a number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
    /// True `n` times out of `of`.
    pub fn chance(&mut self, n: u64, of: u64) -> bool {
        self.below(of) < n
    }
    /// One of the items.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len() as u64) as usize]
    }
}
