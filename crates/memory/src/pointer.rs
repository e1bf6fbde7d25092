//! Tagged data pointers: an address, and what the tag in its upper byte requests of the memory system.

use crate::sectors::{SECTORS, Sector};

/// Bits of a pointer that are its address.
pub(crate) const ADDRESS: u64 = (1 << 56) - 1;

/// A data pointer: its address, what bits 63:60 (`pf_func`) request of the prefetcher, and the sector in bits 57:56
/// (A64FX specification, HPC extension 1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// Address without the tag.
    pub addr: u64,
    /// What it requests of the prefetcher.
    pub steering: Steering,
}

impl From<u64> for Pointer {
    #[inline(always)]
    fn from(pointer: u64) -> Pointer {
        Pointer { addr: pointer & ADDRESS, steering: Steering((pointer >> 56) as u8) }
    }
}

impl Pointer {
    /// The same tag for another address.
    #[inline(always)]
    #[must_use]
    pub fn at(self, addr: u64) -> Pointer {
        Pointer { addr, ..self }
    }

    /// The address with its tag.
    #[inline(always)]
    pub(crate) fn tagged(self) -> u64 {
        self.addr | u64::from(self.steering.0) << 56
    }

    /// The sector it names, whether or not tags select sectors.
    #[inline(always)]
    #[must_use]
    pub fn sector(self) -> Sector {
        self.steering.0 & (SECTORS as Sector - 1)
    }
}

/// `pf_func`: which hardware prefetches an access may trigger, and whether a prefetch instruction is weak. It is the
/// upper half of the pointer's tag; the whole tag is stored, so that one shift splits a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steering(u8);

impl Steering {
    /// No tag.
    pub const NONE: Steering = Steering(0);

    /// Set when the three bits below number the injection registers.
    const INJECTION: u8 = 0x80;
    const NO_L1: u8 = 0x40;
    const NO_L2: u8 = 0x20;
    const WEAK: u8 = 0x10;

    /// The number of the prefetch injection registers that it names, if it does.
    #[inline(always)]
    #[must_use]
    pub fn injection(self) -> Option<usize> {
        self.0.checked_sub(Steering::INJECTION).map(|tag| usize::from(tag >> 4))
    }
    /// Whether hardware stream prefetches into L1 are allowed.
    #[inline(always)]
    #[must_use]
    pub fn l1(self) -> bool {
        self.0 & (Steering::INJECTION | Steering::NO_L1) == 0
    }
    /// Whether hardware stream prefetches into L2 are allowed.
    #[inline(always)]
    #[must_use]
    pub fn l2(self) -> bool {
        self.0 & (Steering::INJECTION | Steering::NO_L2) == 0
    }
    /// Whether a prefetch instruction is weak, unless injection registers decide.
    #[inline(always)]
    #[must_use]
    pub fn weak_software(self) -> bool {
        self.0 & Steering::WEAK != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pf_func: u64) -> Steering {
        Pointer::from(pf_func << 60 | 3 << 56).steering
    }

    #[test]
    fn bits_62_and_61_of_a_pointer_switch_levels_off_and_bit_60_makes_its_prefetch_instructions_weak() {
        let levels = |pf_func| (of(pf_func).l1(), of(pf_func).l2(), of(pf_func).weak_software());
        assert_eq!([0, 1].map(levels), [(true, true, false), (true, true, true)]);
        assert_eq!([2, 4, 6].map(levels), [(true, false, false), (false, true, false), (false, false, false)]);
        assert!((0..8).all(|pf_func| of(pf_func).injection().is_none()));
    }

    #[test]
    fn with_bit_63_a_pointer_names_injection_registers_and_leaves_streams_alone() {
        for n in 0..8 {
            let steering = of(8 + n as u64);
            assert_eq!((steering.injection(), steering.l1(), steering.l2()), (Some(n), false, false));
        }
    }

    #[test]
    fn the_address_of_a_pointer_has_no_tag() {
        let pointer = Pointer::from(0xab00_0000_0000_4000);
        assert_eq!((pointer.addr, pointer.tagged()), (0x4000, 0xab00_0000_0000_4000));
    }

    #[test]
    fn bits_57_and_56_of_a_pointer_are_its_sector() {
        assert_eq!([0xfc, 0x01, 0xfe, 0x03].map(|tag: u64| Pointer::from(tag << 56).sector()), [0, 1, 2, 3]);
    }
}
