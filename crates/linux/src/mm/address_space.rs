//! Address spaces as Linux sees them: what is mapped where, and which pages the modelled system has allocated.

use fxscope_guestmem::SpaceId;
use serde::{Deserialize, Serialize};

use crate::mm::mapped::MappedFiles;
use crate::mm::pages::Pages;

/// The address space of a process, or of several after `vfork`.
#[derive(Serialize, Deserialize)]
pub(crate) struct AddressSpace {
    /// Its translations and regions.
    pub id: SpaceId,
    /// Which files are mapped where.
    pub mapped: MappedFiles,
    /// Its pages in the modelled system.
    pub pages: Pages,
    /// First address of the heap.
    pub heap_start: u64,
    /// Current end of the heap.
    pub brk: u64,
}
