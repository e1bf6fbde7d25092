//! Instructions that worked on some elements only.

/// An instruction of a block whose governing predicate left out elements when the block ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Partial {
    /// Which instruction of the block.
    pub inst: u8,
    /// Active elements.
    pub active: u8,
    /// Elements of the vector.
    pub elements: u8,
}

/// An instruction of a block that met subnormal numbers when the block ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Subnormal {
    /// Which instruction of the block.
    pub inst: u8,
    /// Operations on elements that took or gave one which is not flushed.
    pub operations: u32,
}

impl Partial {
    /// What is missing to `whole`, which stands for all elements, when each stands for the same; rounded up.
    #[must_use]
    pub fn missing(self, whole: u64) -> u64 {
        whole - whole * u64::from(self.active) / u64::from(self.elements.max(1))
    }
}
