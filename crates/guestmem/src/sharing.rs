//! By how many address spaces the pages of a mapping are used.

use super::{Memory, PAGE, PAGE_SHIFT, Region, SpaceId};

/// Bytes of the pages that a mapping has, as `/proc/PID/smaps` tells them apart (`Documentation/filesystems/proc.rst` of Linux).
/// Pages are dirty that differ, or may differ, from those of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PagesByUsers {
    /// Pages of a file that other address spaces use, too.
    pub shared_clean: u64,
    /// Other pages that several address spaces use.
    pub shared_dirty: u64,
    /// Pages of a file that no other address space uses.
    pub private_clean: u64,
    /// Other pages of this address space alone.
    pub private_dirty: u64,
    /// The sum of all pages, each divided by the number of its users.
    pub proportional: u64,
}

impl PagesByUsers {
    /// Returns the bytes of all pages.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.shared_clean + self.shared_dirty + self.private_clean + self.private_dirty
    }
}

impl Memory {
    /// Returns the pages of a region of an address space; none if that has been removed.
    #[must_use]
    pub fn pages_by_users(&self, space: SpaceId, region: &Region) -> PagesByUsers {
        let mut sum = PagesByUsers::default();
        for (page, number) in self.spaces.backed_in(space, region.start >> PAGE_SHIFT, region.end >> PAGE_SHIFT) {
            let of_object = self.objects.page_at(region, page << PAGE_SHIFT).filter(|own| own.number == number);
            // The object is a user, but no address space.
            let users = self.arena.users(number) - u64::from(of_object.is_some());
            let is_dirty = of_object.is_none_or(|page| page.dirty);
            *match (users > 1, is_dirty) {
                (true, false) => &mut sum.shared_clean,
                (true, true) => &mut sum.shared_dirty,
                (false, false) => &mut sum.private_clean,
                (false, true) => &mut sum.private_dirty,
            } += PAGE;
            sum.proportional += PAGE / users.max(1);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::PagesByUsers;
    use crate::{Memory, PAGE, Prot, Segment};

    #[test]
    fn pages_are_shared_after_a_fork_until_one_side_stores_to_them() {
        let mut mem = Memory::new(16 * PAGE).expect("reserve");
        mem.map(PAGE, 4 * PAGE, Prot::RW, Segment::Mmap).expect("mapped");
        mem.store(PAGE, 1u32).expect("stored");
        mem.store(2 * PAGE, 1u32).expect("stored");
        let region = *mem.region_at(PAGE).expect("mapped");
        let parent = mem.active();
        let alone = PagesByUsers { private_dirty: 2 * PAGE, proportional: 2 * PAGE, ..PagesByUsers::default() };
        assert_eq!(mem.pages_by_users(parent, &region), alone);
        let child = mem.fork().expect("forked");
        let both = PagesByUsers { shared_dirty: 2 * PAGE, proportional: PAGE, ..PagesByUsers::default() };
        assert_eq!([parent, child].map(|space| mem.pages_by_users(space, &region)), [both; 2]);
        mem.store(PAGE, 2u32).expect("stored");
        let one = PagesByUsers { shared_dirty: PAGE, private_dirty: PAGE, proportional: 3 * PAGE / 2, ..both };
        assert_eq!([parent, child].map(|space| mem.pages_by_users(space, &region)), [one; 2]);
        mem.remove_space(child);
        assert_eq!(mem.pages_by_users(parent, &region), alone);
    }

    #[test]
    fn the_object_of_a_mapping_is_no_user_of_its_pages() {
        let mut mem = Memory::new(16 * PAGE).expect("reserve");
        mem.map_shared(PAGE, PAGE, Prot::RW, Segment::Mmap).expect("mapped");
        mem.store(PAGE, 1u32).expect("stored");
        let region = *mem.region_at(PAGE).expect("mapped");
        let alone = PagesByUsers { private_dirty: PAGE, proportional: PAGE, ..PagesByUsers::default() };
        assert_eq!(mem.pages_by_users(mem.active(), &region), alone);
        let child = mem.fork().expect("forked");
        let both = PagesByUsers { shared_dirty: PAGE, proportional: PAGE / 2, ..PagesByUsers::default() };
        assert_eq!(mem.pages_by_users(child, &region), both);
    }
}
