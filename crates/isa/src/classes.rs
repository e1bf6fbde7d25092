//! What an instruction counts as in the instruction mix.

/// A statistical class. An instruction may be of several ([`Classes`]); its memory access, floating-point
/// operations and branch are separate parts of its description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Class {
    /// Floating-point operation: arithmetic, comparison, rounding to integral values.
    FloatingPoint,
    /// Estimate of a reciprocal or of a reciprocal square root.
    Estimate,
    /// Assists mathematical functions (FEXPA, FTMAD, FTSMUL, FTSSEL).
    MathAssist,
    /// Conversion to, from or between floating-point formats.
    Conversion,
    /// Moves values to, from or between vector registers.
    Move,
    /// Integer operation on vector registers.
    VectorInteger,
    /// Operation on predicate registers.
    Predicate,
    /// Moves values from one element to another, or to all.
    InterElement,
    /// Moves values between general and vector registers, or chooses between registers.
    InterRegister,
    /// Works on vectors of elements.
    Simd,
    /// Belongs to SVE.
    Sve,
    /// A governing predicate says which elements are active.
    Governed,
    /// Loads or stores single scalars or whole vector registers without structure: LDR, LDP, STR, STP of SIMD&FP registers.
    ScalarTransfer,
    /// Loads one element, or a group of them, into all.
    Broadcast,
    /// Loads or stores interleaved structures.
    Structure,
    /// First-fault or non-fault load.
    FirstFault,
    /// SVE LDR or STR of a whole vector register.
    WholeVector,
    /// SVE LDR or STR of a predicate register.
    WholePredicate,
    /// Exclusive access.
    Exclusive,
    /// The base register is updated before the access.
    PreIndex,
    /// The base register is updated after the access.
    PostIndex,
    /// Prefetch instruction, whether it has an effect or not.
    Prefetch,
    /// Instruction synchronisation barrier.
    Isb,
    /// Data synchronisation barrier.
    Dsb,
    /// Data memory barrier.
    Dmb,
}

/// A set of [`Class`]es.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Classes(u32);

impl Classes {
    /// Returns the set with `class` added.
    #[must_use]
    pub const fn with(self, class: Class) -> Classes {
        Classes(self.0 | 1 << class as u8)
    }
    /// Returns whether `class` is in the set.
    #[must_use]
    pub const fn has(self, class: Class) -> bool {
        self.0 >> class as u8 & 1 == 1
    }
}

impl<const N: usize> From<[Class; N]> for Classes {
    fn from(list: [Class; N]) -> Classes {
        list.into_iter().fold(Classes::default(), Classes::with)
    }
}

impl From<Class> for Classes {
    fn from(class: Class) -> Classes {
        Classes::default().with(class)
    }
}
