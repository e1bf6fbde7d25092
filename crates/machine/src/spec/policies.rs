//! The policies that a machine selects by name. Each has a file in the model; CONTRIBUTING.md, "Add a policy", says how to
//! add one.

use crate::schema::policies;

policies! {
    /// How the hardware prefetcher decides what to prefetch.
    PrefetchPolicy {
        /// It follows ascending and descending streams of lines, and prefetches as injection registers say.
        Stream = "stream",
        /// Each miss, and the first use of each prefetched line, prefetches the line after it.
        NextLine = "next_line",
    }
}

policies! {
    /// Which line of a full set leaves for a new one.
    Replacement {
        /// The least recently used one.
        Lru = "lru",
        /// The one that came first.
        Fifo = "fifo",
        /// One that a tree of bits, which point away from recently used lines, leads to.
        TreePlru = "tree_plru",
        /// Any, by a generator of pseudo-random numbers.
        Random = "random",
    }
}

policies! {
    /// Which page of a full first-level TLB leaves for a new one.
    TlbReplacement {
        /// The least recently used one.
        Lru = "lru",
        /// The one that came first.
        Fifo = "fifo",
    }
}

policies! {
    /// Which stream of a full prefetch queue leaves for a new one.
    StreamReplacement {
        /// The one that came first.
        Fifo = "fifo",
        /// Any, by a generator of pseudo-random numbers.
        Random = "random",
    }
}

policies! {
    /// How the directions of conditional branches are predicted.
    DirectionPredictor {
        /// A loop prediction table, and weights by branch and distance for branches that it does not know.
        Perceptron = "perceptron",
        /// Two-bit counters, indexed by the address of the branch and the global history.
        Gshare = "gshare",
    }
}

policies! {
    /// When the system uses transparent huge pages.
    HugePageSetting {
        /// Wherever they fit.
        Always = "always",
        /// Where a program asks for them.
        Madvise = "madvise",
        /// Nowhere.
        Never = "never",
    }
}

/// When the system uses transparent huge pages of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FolioSetting {
    /// Wherever they fit.
    Always,
    /// As the setting for all sizes says.
    Inherit,
    /// Where a program asks for them.
    Madvise,
    /// Nowhere.
    Never,
}

policies! {
    /// The clock and the floating-point pipes that a processor runs with.
    PowerMode {
        /// The normal clock, all pipes.
        Normal = "normal",
        /// A higher clock at a higher voltage.
        Boost = "boost",
        /// One floating-point pipe, and less power.
        Eco = "eco",
        /// The higher clock with one floating-point pipe.
        BoostEco = "boost-eco",
    }
}

impl PowerMode {
    /// Whether the clock is the one of boost mode.
    #[must_use]
    pub const fn is_boost(self) -> bool {
        matches!(self, PowerMode::Boost | PowerMode::BoostEco)
    }

    /// Whether the floating-point pipes are those of eco mode.
    #[must_use]
    pub const fn is_eco(self) -> bool {
        matches!(self, PowerMode::Eco | PowerMode::BoostEco)
    }
}
