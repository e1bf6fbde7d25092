//! Instructions that operated on some elements only.

/// An instruction of a block whose governing predicate had inactive elements when the block ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Partial {
    /// Which instruction of the block.
    pub inst: u8,
    /// Active elements.
    pub active: u8,
    /// Elements of the vector.
    pub elements: u8,
}

/// An instruction of a block that encountered subnormal numbers when the block ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Subnormal {
    /// Which instruction of the block.
    pub inst: u8,
    /// Operations on elements with a subnormal operand or result that is not flushed to zero.
    pub operations: u32,
}

impl Partial {
    /// Returns the share of `whole`, a count for all elements, that belongs to the inactive ones; rounded up.
    #[must_use]
    pub fn missing(self, whole: u64) -> u64 {
        whole - whole * u64::from(self.active) / u64::from(self.elements.max(1))
    }
}
