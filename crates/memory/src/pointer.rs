//! Data pointers: an address, and what the tag in its upper byte asks of the memory system.

/// A data pointer: its address, and what its bits 63:60, `pf_func`, ask of the prefetcher (A64FX specification,
/// HPC extension 1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// Address without the tag.
    pub addr: u64,
    /// What it asks of the prefetcher.
    pub steering: Steering,
}

impl From<u64> for Pointer {
    #[inline(always)]
    fn from(pointer: u64) -> Pointer {
        const ADDRESS: u64 = (1 << 56) - 1;
        Pointer { addr: pointer & ADDRESS, steering: Steering((pointer >> 60) as u8) }
    }
}

impl Pointer {
    /// The same steering for another address.
    #[inline(always)]
    #[must_use]
    pub fn at(self, addr: u64) -> Pointer {
        Pointer { addr, ..self }
    }
}

/// Which hardware prefetches may follow an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steering(u8);

impl Steering {
    /// Of a pointer without a tag.
    pub const NONE: Steering = Steering(0);

    const INJECTION: u8 = 8;
    const NO_L1: u8 = 4;
    const NO_L2: u8 = 2;

    /// Injection functions (8 to 15) are taken for ordinary streams.
    #[inline(always)]
    fn allows(self, disabled: u8) -> bool {
        self.0 & disabled == 0 || self.0 & Steering::INJECTION != 0
    }
    /// Whether hardware prefetches into L1 may.
    #[inline(always)]
    #[must_use]
    pub fn l1(self) -> bool {
        self.allows(Steering::NO_L1)
    }
    /// Whether hardware prefetches into L2 may.
    #[inline(always)]
    #[must_use]
    pub fn l2(self) -> bool {
        self.allows(Steering::NO_L2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_62_and_61_of_a_pointer_switch_levels_off_unless_bit_63_chooses_injection() {
        let levels = |pf_func: u64| {
            let pointer = Pointer::from(pf_func << 60 | 3 << 56 | 0x4000);
            assert_eq!(pointer.addr, 0x4000);
            (pointer.steering.l1(), pointer.steering.l2())
        };
        assert_eq!(
            [0, 1, 2, 4, 6].map(levels),
            [(true, true), (true, true), (true, false), (false, true), (false, false)]
        );
        assert_eq!(levels(0xe), (true, true));
    }
}
