//! Architectural registers as the timing model sees them.

/// Which physical register file a register is renamed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegClass {
    /// General-purpose register or stack pointer.
    Gpr,
    /// SIMD&FP / SVE vector register.
    Vector,
    /// SVE predicate register, or the first-fault register.
    Predicate,
    /// Condition flags.
    Flags,
}

/// A dense architectural register number. The zero register has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reg(pub u8);

impl Reg {
    /// The stack pointer.
    pub const SP: Reg = Reg(31);
    /// The first-fault register.
    pub const FFR: Reg = Reg(80);
    /// The condition flags N, Z, C, V, renamed as one.
    pub const NZCV: Reg = Reg(81);
    /// Number of dense register numbers.
    pub const COUNT: usize = 82;

    /// General-purpose register `n` (0–30).
    #[must_use]
    pub const fn gpr(n: u8) -> Reg {
        Reg(n)
    }
    /// Vector register `n` (0–31).
    #[must_use]
    pub const fn vector(n: u8) -> Reg {
        Reg(32 + n)
    }
    /// Predicate register `n` (0–15).
    #[must_use]
    pub const fn predicate(n: u8) -> Reg {
        Reg(64 + n)
    }
    /// Returns the register file that renames it.
    #[must_use]
    pub const fn class(self) -> RegClass {
        match self.0 {
            0..=31 => RegClass::Gpr,
            32..=63 => RegClass::Vector,
            64..=80 => RegClass::Predicate,
            _ => RegClass::Flags,
        }
    }
}

/// A short list of registers, stored inline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RegList {
    len: u8,
    regs: [u8; 7],
}

impl RegList {
    /// The empty list.
    pub const EMPTY: RegList = RegList { len: 0, regs: [0; 7] };

    /// Appends `reg`. More registers than any instruction has is a bug of the instruction table.
    pub fn push(&mut self, reg: Reg) {
        self.regs[usize::from(self.len)] = reg.0;
        self.len += 1;
    }
    /// Iterates over the registers in order.
    pub fn iter(&self) -> impl Iterator<Item = Reg> + '_ {
        self.regs[..usize::from(self.len)].iter().map(|&r| Reg(r))
    }
    /// Returns the number of registers.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::from(self.len)
    }
    /// Returns whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Returns the `i`-th register, if there is one.
    #[must_use]
    pub fn get(&self, i: usize) -> Option<Reg> {
        (i < self.len()).then(|| Reg(self.regs[i]))
    }
}
