//! Serialisation that `serde` does not implement.

/// Arrays of more than 32 words, as sequences.
pub(crate) mod array {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer, const N: usize>(words: &[u64; N], serializer: S) -> Result<S::Ok, S::Error> {
        words[..].serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>, const N: usize>(
        deserializer: D,
    ) -> Result<[u64; N], D::Error> {
        let words = Vec::deserialize(deserializer)?;
        <[u64; N]>::try_from(words).map_err(|words| D::Error::invalid_length(words.len(), &"an array of fixed length"))
    }
}
