//! Words as differences to the one before: addresses of loops have few of them, so that they take little space when compressed.

use serde::{Deserialize as _, Deserializer, Serializer};

/// Writes words as differences, small ones with few bits whatever their sign.
pub(super) fn serialize<S: Serializer>(words: &[u64], serializer: S) -> Result<S::Ok, S::Error> {
    let mut before = 0;
    serializer.collect_seq(words.iter().map(|&word| {
        let difference = word.wrapping_sub(before) as i64;
        before = word;
        (difference << 1 ^ difference >> 63) as u64
    }))
}

/// Reads what [`serialize`] has written.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u64>, D::Error> {
    let mut words = Vec::<u64>::deserialize(deserializer)?;
    let mut before = 0u64;
    for word in &mut words {
        let difference = *word >> 1 ^ (*word & 1).wrapping_neg();
        before = before.wrapping_add(difference);
        *word = before;
    }
    Ok(words)
}
