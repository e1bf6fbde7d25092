//! What a report shows.

/// The smallest parts of a region's work that have rows of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum By {
    /// Each thread, each CMG, each process.
    #[default]
    Thread,
    /// Each CMG, each process.
    Cmg,
    /// Each process.
    Process,
}

/// What a report shows.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Options {
    /// In which parts.
    pub by: By,
    /// Of this region only.
    pub region: Option<String>,
}
