//! A matrix of bits with one column for each class.

/// A matrix of bits.
pub struct BitMatrix {
    rows: usize,
    /// Words in a row.
    words: usize,
    bits: Vec<u64>,
}

impl BitMatrix {
    /// Creates a matrix of zeros with `rows` rows and at least one column.
    pub fn new(rows: usize) -> BitMatrix {
        BitMatrix { rows, words: 1, bits: vec![0; rows] }
    }

    /// Makes room for `columns` columns.
    pub fn reserve(&mut self, columns: usize) {
        let words = columns.div_ceil(64).next_power_of_two();
        if words <= self.words {
            return;
        }
        let mut bits = vec![0; self.rows * words];
        for (new, old) in bits.chunks_exact_mut(words).zip(self.bits.chunks_exact(self.words)) {
            new[..old.len()].copy_from_slice(old);
        }
        (self.words, self.bits) = (words, bits);
    }

    /// Returns the words of a row.
    #[inline(always)]
    pub fn row(&self, row: usize) -> &[u64] {
        &self.bits[row * self.words..][..self.words]
    }

    /// Returns the words of a row.
    #[inline(always)]
    pub fn row_mut(&mut self, row: usize) -> &mut [u64] {
        &mut self.bits[row * self.words..][..self.words]
    }

    /// Sets or clears a bit.
    #[inline(always)]
    pub fn put(&mut self, row: usize, column: usize, on: bool) {
        let word = &mut self.bits[row * self.words + column / 64];
        *word = *word & !(1 << (column % 64)) | u64::from(on) << (column % 64);
    }

    /// Copies a column to another.
    pub fn copy_column(&mut self, from: usize, to: usize) {
        for row in 0..self.rows {
            let on = self.bits[row * self.words + from / 64] >> (from % 64) & 1 != 0;
            self.put(row, to, on);
        }
    }

    /// Clears all bits.
    pub fn clear(&mut self) {
        self.bits.fill(0);
    }
}

/// Returns the indices of the bits that are set.
#[inline(always)]
pub fn ones(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let one = (mask != 0).then(|| mask.trailing_zeros())?;
        mask &= mask - 1;
        Some(one as usize % u64::BITS as usize)
    })
}
