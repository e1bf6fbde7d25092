//! Guest memory: the pages of all address spaces of a run, and the address spaces.
//!
//! Guest pages live in one large anonymous mapping, the *arena*; a page's offset in it serves as its physical address. Every
//! access goes through a translation that yields an arena offset, and then through the bounds check of a slice: host memory
//! outside the arena cannot be addressed.
//!
//! One address space is *active*: accesses use its translations, as a core uses the tables that `TTBR0` names.
//! [`Memory::activate`] selects another. [`Memory::fork`] copies an address space; the copy shares its pages until either side
//! stores to them.
//!
//! Mappings that share memory map the same *object*, which owns its pages: the pages of a file, of an anonymous shared mapping,
//! or of a System V segment.
//!
//! Pages are backed on first touch. The unit of mapping and protection is [`PAGE`]; the page size that the *modelled* machine
//! uses for a segment is up to the timing model.

mod access;
mod arena;
mod mapping;
mod object;
mod room;
mod segment;
mod sharing;
mod space;
mod tlb;
mod view;
mod watch;

use serde::{Deserialize, Serialize};

use arena::Arena;
pub use object::{Backing, ObjectAddress, ObjectId, PageSource, SharedBy};
use object::{NoPage, Objects};
pub use segment::Segment;
pub use sharing::PagesByUsers;
pub use space::SpaceId;
use space::Spaces;
use tlb::Tlb;
pub use view::View;

/// Unit of mapping and protection: the base page of A64FX's usual kernels, 64 KiB.
pub const PAGE: u64 = 1 << PAGE_SHIFT;
const PAGE_SHIFT: u32 = 16;

/// First address beyond user space (48-bit virtual addresses).
pub const USER_END: u64 = 1 << 48;

/// Significant address bits: user space runs with top-byte-ignore.
const ADDRESS: u64 = (1 << 56) - 1;

/// Access rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Prot {
    /// Loads allowed.
    pub read: bool,
    /// Stores allowed.
    pub write: bool,
    /// Instruction fetch allowed.
    pub exec: bool,
}

impl Prot {
    /// No access.
    pub const NONE: Prot = Prot { read: false, write: false, exec: false };
    /// Read only.
    pub const R: Prot = Prot { read: true, write: false, exec: false };
    /// Read and write.
    pub const RW: Prot = Prot { read: true, write: true, exec: false };
    /// Read and execute.
    pub const RX: Prot = Prot { read: true, write: false, exec: true };
    /// Everything.
    pub const RWX: Prot = Prot { read: true, write: true, exec: true };
}

/// What kind of access failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Touch {
    /// A load.
    Read,
    /// A store.
    Write,
    /// An instruction fetch.
    Fetch,
}

/// An access that the address space does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemFault {
    /// The address of the first byte that could not be accessed.
    pub addr: u64,
    /// What was attempted.
    pub touch: Touch,
    /// Whether the address is mapped, but with other rights (`SEGV_ACCERR`), or not at all (`SEGV_MAPERR`).
    pub mapped: bool,
    /// The machine has no page left to back the address (reported as `SIGBUS`).
    pub out_of_memory: bool,
    /// The file that is mapped there ends before the address (reported as `SIGBUS`).
    pub beyond_end: bool,
}

impl MemFault {
    /// Returns the fault of an access to an address that is not mapped.
    fn unmapped(addr: u64, touch: Touch) -> MemFault {
        MemFault { addr, touch, mapped: false, out_of_memory: false, beyond_end: false }
    }

    /// Returns the same fault for a mapped address that has no page.
    fn because(self, cause: NoPage) -> MemFault {
        let (out_of_memory, beyond_end) = (cause == NoPage::NoRoom, cause == NoPage::BeyondEnd);
        MemFault { mapped: true, out_of_memory, beyond_end, ..self }
    }
}

/// A mapped range of the address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    /// First address.
    pub start: u64,
    /// Address behind the last byte.
    pub end: u64,
    /// Rights.
    pub prot: Prot,
    /// Purpose.
    pub segment: Segment,
    /// Stores change the object that it maps, which other mappings see (`MAP_SHARED`); otherwise they change a copy of the page.
    pub shared: bool,
    /// What it maps; `None`: zero pages of its own.
    pub backing: Option<Backing>,
}

/// Why a mapping was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapError {
    /// Not a whole number of pages, empty, or beyond user space.
    BadRange,
    /// Some page of the range is not mapped.
    NotMapped,
    /// No room in memory for page tables or pages.
    NoRoom,
}

/// The memory of a run: its pages and its address spaces, one of which is active.
///
/// Its serialised form lacks the contents of the pages: [`Memory::written_pages`] has them, and [`Memory::set_page`] puts them back.
#[derive(Serialize, Deserialize)]
pub struct Memory {
    arena: Arena,
    /// Translations of the active address space.
    #[serde(skip)]
    tlb: Tlb,
    spaces: Spaces,
    objects: Objects,
}

impl Memory {
    /// Returns a copy of all pages and address spaces.
    ///
    /// # Errors
    /// When the host cannot reserve that much address space.
    pub fn try_clone(&self) -> std::io::Result<Memory> {
        let (spaces, objects) = (self.spaces.clone(), self.objects.clone());
        Ok(Memory { arena: self.arena.try_clone()?, tlb: Tlb::default(), spaces, objects })
    }

    /// Iterates over the pages in use that are not all zeros: number, and [`PAGE`] bytes.
    pub fn written_pages(&self) -> impl Iterator<Item = (u32, &[u8])> {
        self.arena.contents()
    }

    /// Sets the contents of a page in use. Returns `false` if there is no such page, or if it has another length than [`PAGE`].
    pub fn set_page(&mut self, number: u32, bytes: &[u8]) -> bool {
        let fits = number < self.arena.used() && bytes.len() as u64 == PAGE;
        if fits {
            self.arena.page_mut(number).copy_from_slice(bytes);
        }
        fits
    }

    /// Returns whether every page and object that address spaces use exists. In memory from a damaged snapshot, it may not.
    #[must_use]
    pub fn is_consistent(&self) -> bool {
        let pages = self.arena.used();
        self.spaces.are_within(pages) && self.objects.are_within(pages) && self.spaces.have_objects(&self.objects)
    }

    /// Returns memory with one address space, active and empty, that may hold up to `limit` bytes of backed pages.
    ///
    /// # Errors
    /// When the host cannot reserve that much address space.
    pub fn new(limit: u64) -> std::io::Result<Memory> {
        let (spaces, objects) = (Spaces::new(), Objects::default());
        Ok(Memory { arena: Arena::new(limit)?, tlb: Tlb::default(), spaces, objects })
    }
}
