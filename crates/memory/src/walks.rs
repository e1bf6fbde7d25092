//! Walks of the translation tables, for a system that finds out which pages are used.

use fxscope_calendar::Cycle;

/// A walk for a page that no TLB of the core had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Walk {
    /// The address, with the number of its address space above it.
    pub address: u64,
    /// When it began.
    pub at: Cycle,
}

impl Walk {
    /// Returns the number of the address space.
    #[must_use]
    pub fn space(self) -> u16 {
        (self.address >> crate::tables::VIRTUAL_BITS) as u16
    }

    /// Returns the address in that space.
    #[must_use]
    pub fn virtual_address(self) -> u64 {
        self.address & ((1 << crate::tables::VIRTUAL_BITS) - 1)
    }
}

/// The walks of a core, if somebody wants to know them.
#[derive(Clone, Default, serde::Deserialize, serde::Serialize)]
pub(crate) struct Walks(Option<Vec<Walk>>);

impl Walks {
    pub(crate) fn new(wanted: bool) -> Walks {
        Walks(wanted.then(Vec::new))
    }

    #[inline(always)]
    pub(crate) fn note(&mut self, address: u64, at: Cycle) {
        if let Some(walks) = &mut self.0 {
            walks.push(Walk { address, at });
        }
    }

    #[inline(always)]
    pub(crate) fn are_there(&self) -> bool {
        self.0.as_ref().is_some_and(|walks| !walks.is_empty())
    }

    pub(crate) fn take(&mut self, empty: Vec<Walk>) -> Vec<Walk> {
        self.0.replace(empty).unwrap_or_default()
    }
}
