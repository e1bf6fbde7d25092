//! The program's call that makes a mapping, and the pages for mappings of particular calls.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::policy::Policy;
use super::{MappingPages, NodeMask, Pages, RangeMap};
use crate::kernel::Kernel;

/// Maximum number of stack frames examined.
const FRAMES: usize = 64;
/// Registers of the procedure call standard: frame pointer and return address.
const FP: u8 = 29;
const LR: u8 = 30;

/// Functions that map memory for their callers, in addition to names that the C standard reserves for its libraries (with a
/// leading underscore) and C++'s `operator new`.
const ALLOCATORS: &[&str] = &[
    "aligned_alloc",
    "alloc_new_heap",
    "calloc",
    "malloc",
    "memalign",
    "mmap",
    "mmap64",
    "mremap",
    "new_heap",
    "posix_memalign",
    "pvalloc",
    "realloc",
    "reallocarray",
    "syscall",
    "sysmalloc",
    "sysmalloc_mmap",
    "valloc",
];

/// A call that maps memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// The call's address.
    pub address: u64,
    /// The file of the calling code, as programs see it, and the offset of the call in it.
    pub file: Option<(Vec<u8>, u64)>,
    /// Whether that file is the program's own.
    pub is_own: bool,
    /// The calling function, and the offset of the call in it.
    pub function: Option<(String, u64)>,
}

impl Site {
    /// Returns the call in the program's own file that led to the thread's system call: the first on the chain of frame pointers
    /// that is not in an allocator. If there is none, one in another file.
    pub(crate) fn calling(k: &mut Kernel<'_>) -> Site {
        let calls: Vec<u64> = return_addresses(k).into_iter().map(|address| address.wrapping_sub(4)).collect();
        let file =
            |&address: &u64| k.spaces[k.process.space].mapped.at(address).map(|mapped| (mapped.path, mapped.offset));
        let own = |address: &u64| file(address).is_some_and(|(path, _)| path == k.process.files.program.path);
        let place = |address: u64| k.process.symbols.at(address).map(|place| (place.function.to_owned(), place.offset));
        let outside = |address: &u64| place(*address).is_none_or(|(name, _)| !allocates(&name));
        let candidates = || calls.iter().copied().filter(outside);
        let address = candidates().find(own).or_else(|| candidates().find(|address| file(address).is_some()));
        let address = address.unwrap_or(calls[0]);
        Site { address, file: file(&address), is_own: own(&address), function: place(address) }
    }

    /// Returns whether it is the same call: at the same place of the same file, or at the same address.
    #[must_use]
    pub fn is_at(&self, other: &Site) -> bool {
        self.file == other.file && (self.file.is_some() || self.address == other.address)
    }
}

/// Returns the thread's current address and its return addresses, innermost first.
fn return_addresses(k: &mut Kernel<'_>) -> Vec<u64> {
    let (mut frame, mut addresses) = (k.thread.cpu.x(FP), vec![k.thread.cpu.pc, k.thread.cpu.x(LR)]);
    let mut word = |address: u64| {
        let mut bytes = [0; 8];
        k.mem.read(address, &mut bytes).ok().map(|()| u64::from_le_bytes(bytes))
    };
    while addresses.len() < FRAMES
        && let (Some(next), Some(address)) = (word(frame), word(frame.wrapping_add(8)))
    {
        addresses.push(address);
        // Stacks grow down: the frame of a caller is higher.
        if next <= frame {
            break;
        }
        frame = next;
    }
    addresses
}

/// Returns whether a function maps memory for its caller.
fn allocates(name: &str) -> bool {
    let reserved = name.starts_with('_') && !name.starts_with("_Z");
    let operator_new = name.starts_with("_Znw") || name.starts_with("_Zna");
    // Removes version suffixes of shared libraries and the compiler's suffixes for parts of functions.
    let plain = name.split(['@', '.']).next().unwrap_or(name);
    reserved || operator_new || ALLOCATORS.contains(&plain)
}

/// Pages for mappings made by calls in a part of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SitePages {
    /// The part's addresses.
    pub calls: Range<u64>,
    /// The pages.
    pub pages: MappingPages,
}

/// The memory node for mappings made by calls in a part of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteNode {
    /// The part's addresses.
    pub calls: Range<u64>,
    /// The node.
    pub node: u32,
}

/// The recorded calls that have mapped memory.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct Sites {
    /// Minimum bytes of a mapping to record its call.
    pub noted_from: Option<u64>,
    pub rules: Vec<SitePages>,
    /// To how many mappings each rule applied.
    pub uses: Vec<u64>,
    /// Rules for nodes, and to how many mappings each applied.
    pub nodes: Vec<(SiteNode, u64)>,
    /// The calls found so far, by number.
    pub list: Vec<Site>,
    /// The number of the call of each private mapping.
    pub of: RangeMap<u32>,
}

impl Sites {
    /// Returns the number of a call.
    fn number(&mut self, site: Site) -> u32 {
        let known = self.list.iter().position(|known| known.is_at(&site));
        known.unwrap_or_else(|| {
            self.list.push(site);
            self.list.len() - 1
        }) as u32
    }

    /// Returns the pages for a mapping that a call makes.
    fn pages(&mut self, site: &Site) -> Option<MappingPages> {
        // The last rule takes precedence.
        let rule = self.rules.iter().rposition(|rule| rule.calls.contains(&site.address))?;
        self.uses[rule] += 1;
        Some(self.rules[rule].pages)
    }

    /// Returns the last rule for the node of mappings that a call makes.
    fn node_rule(&mut self, site: &Site) -> Option<&mut (SiteNode, u64)> {
        self.nodes.iter_mut().rfind(|(rule, _)| rule.calls.contains(&site.address))
    }
}

impl Pages {
    /// Returns whether to find out the call of a mapping of `len` bytes.
    pub(crate) fn wants_site(&self, len: u64) -> bool {
        !self.sites.rules.is_empty()
            || !self.sites.nodes.is_empty()
            || self.sites.noted_from.is_some_and(|least| len >= least)
    }

    /// Returns the pages for a mapping that a call makes, and the call's number.
    pub(crate) fn site(&mut self, site: Site) -> (Option<MappingPages>, u32) {
        let pages = self.sites.pages(&site);
        if let Some((_, uses)) = self.sites.node_rule(&site) {
            *uses += 1;
        }
        (pages, self.sites.number(site))
    }

    /// Records that a range has been mapped by the call with this number, before its pages are allocated.
    pub(crate) fn made_by(&mut self, range: Range<u64>, site: u32) {
        self.sites.of.set(range.clone(), site);
        let call = self.sites.list.get(site as usize).cloned();
        if let Some(node) = call.and_then(|call| self.sites.node_rule(&call).map(|(rule, _)| rule.node)) {
            self.set_policy(range, Policy::bind(1 << node as NodeMask));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocators_are_skipped_and_functions_of_programs_are_not() {
        for name in [
            "malloc",
            "__mmap64",
            "_int_malloc",
            "sysmalloc",
            "_Znwm",
            "_Znam",
            "calloc@GLIBC_2.17",
            "sysmalloc_mmap.constprop.0",
        ] {
            assert!(allocates(name), "{name}");
        }
        for name in ["main", "MAIN__", "_ZN4Grid4initEv", "allocate_arrays_", "malloc_fields"] {
            assert!(!allocates(name), "{name}");
        }
    }
}
