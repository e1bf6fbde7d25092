//! What is not compared, and why.

use fxscope_aarch64::table::bits;

/// Rows that cannot be compared: name prefix and reason. Unit tests cover them.
pub const SKIPPED: &[(&str, &str)] = &[];

/// Whether the row is skipped.
pub fn skipped(name: &str) -> bool {
    SKIPPED.iter().any(|(row, _)| *row == name)
}

/// Whether the architecture leaves the behaviour of the word open (CONSTRAINED UNPREDICTABLE).
pub fn unpredictable(word: u32) -> bool {
    let (rt, rn, rt2, rs) = (bits(word, 0, 5), bits(word, 5, 5), bits(word, 10, 5), bits(word, 16, 5));
    let load = bits(word, 22, 1) == 1;
    let simd = bits(word, 26, 1) == 1;
    // Base register updated and transferred by the same instruction.
    let is_base = |r: u32| !simd && r == rn && rn != 31;

    // Load/store pair: equal targets of a load; write-back over a transferred register.
    if word & 0x3a00_0000 == 0x2800_0000 {
        let writeback = bits(word, 23, 1) == 1;
        return (load && rt == rt2) || (writeback && (is_base(rt) || is_base(rt2)));
    }
    // Load/store register, post-indexed and pre-indexed.
    if word & 0x3b20_0400 == 0x3800_0400 {
        return is_base(rt);
    }
    // Exclusives: equal targets of a pair load; status register equal to data or base.
    if word & 0x3f80_0000 == 0x0800_0000 {
        let pair = bits(word, 21, 1) == 1;
        // CASP shares this space (bit 31 clear, bit 21 set) and has no such case.
        if pair && bits(word, 31, 1) == 0 {
            return false;
        }
        return if load { pair && rt == rt2 } else { rs == rt || (pair && rs == rt2) || (rs == rn && rn != 31) };
    }
    false
}
