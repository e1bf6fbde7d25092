//! The program's control of the hardware prefetcher: distances, levels, reliableness, injection.
//!
//! Source: A64FX specification, HPC extension 1.3; microarchitecture manual 11.3 and 11.5.

use fxscope_machine::spec::Prefetch as PrefetchSpec;

use crate::pointer::Steering;

/// Number of register pairs for prefetch injection.
pub const INJECTIONS: usize = 8;

/// What holds unless registers say otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Defaults {
    /// Whether the hardware prefetches into L1, and into L2.
    pub l1: bool,
    /// See `l1`.
    pub l2: bool,
    /// Distances of stream detect mode, lines.
    pub l1_lines: u32,
    /// See `l1_lines`.
    pub l2_lines: u32,
    /// Whether tags of pointers steer the prefetcher.
    pub tagged_pointers: bool,
}

impl From<&PrefetchSpec> for Defaults {
    fn from(spec: &PrefetchSpec) -> Defaults {
        Defaults {
            l1: spec.l1,
            l2: spec.l2,
            l1_lines: spec.l1_lines,
            l2_lines: spec.l2_lines,
            tagged_pointers: spec.tagged_pointers,
        }
    }
}

/// The registers that control prefetching of one core, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// `IMP_PF_STREAM_DETECT_CTRL_EL0`.
    pub stream_detect: u64,
    /// `IMP_PF_INJECTION_CTRLn_EL0`.
    pub injection_ctrl: [u64; INJECTIONS],
    /// `IMP_PF_INJECTION_DISTANCEn_EL0`.
    pub injection_distance: [u64; INJECTIONS],
}

/// What happens to a prefetch when a resource is busy (manual 11.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum Reliableness {
    /// It waits for the resource.
    Strong,
    /// It is dropped.
    Weak,
}

impl Reliableness {
    #[inline(always)]
    pub(crate) fn weak_if(weak: bool) -> Reliableness {
        if weak { Reliableness::Weak } else { Reliableness::Strong }
    }
}

/// Stream detect mode at one cache level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct StreamLevel {
    /// Whether hardware prefetches into this level, at whatever distance.
    pub on: bool,
    /// Largest distance, lines; 0: no prefetches into this level.
    pub lines: u32,
    /// Of its prefetches.
    pub reliableness: Reliableness,
}

/// Prefetch injection at one cache level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct InjectionLevel {
    /// Distance, bytes; 0: no prefetches into this level.
    pub distance: i64,
    /// Of its prefetches.
    pub reliableness: Reliableness,
}

/// One pair of injection registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Injection {
    /// `V`: without it accesses by this number cause no prefetches.
    pub valid: bool,
    /// `A`: streams take entries of the prefetch queue (PFQ_ALLOCATE mode); otherwise each access prefetches.
    pub allocate: bool,
    /// Prefetches into L1.
    pub l1: InjectionLevel,
    /// Prefetches into L2.
    pub l2: InjectionLevel,
    /// `PFQ_OFFSET`: from one predicted address to the next, bytes.
    pub offset: i64,
    /// `SWW`: of prefetch instructions.
    pub software: Reliableness,
}

/// How a core prefetches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Control {
    /// Stream detect mode, L1.
    pub l1: StreamLevel,
    /// Stream detect mode, L2.
    pub l2: StreamLevel,
    /// Injection mode, by number.
    pub injection: [Injection; INJECTIONS],
    /// Whether tags of pointers steer the prefetcher.
    tagged: bool,
}

/// Bit `n` of `word`.
const fn bit(word: u64, n: u32) -> bool {
    word >> n & 1 == 1
}

/// Bits `high` to `low` of `word`.
const fn field(word: u64, high: u32, low: u32) -> u64 {
    word << (63 - high) >> (63 - high + low)
}

/// The same as a two's complement number.
const fn signed_field(word: u64, high: u32, low: u32) -> i64 {
    (word << (63 - high)) as i64 >> (63 - high + low)
}

impl Control {
    /// The control by `registers`; the machine's `defaults` hold where they set nothing.
    #[must_use]
    pub fn new(registers: &Registers, defaults: &Defaults) -> Control {
        let word = if bit(registers.stream_detect, 63) { registers.stream_detect } else { 0 };
        let level = |on: bool, disabled: u32, weak: u32, set: u64, default: u32| StreamLevel {
            on: on && !bit(word, disabled),
            lines: match set as u32 {
                _ if !on || bit(word, disabled) => 0,
                0 => default,
                lines => lines,
            },
            reliableness: Reliableness::weak_if(bit(word, weak)),
        };
        // One unit of L2_DIST is 1 KiB: four lines.
        let (l1_dist, l2_dist) = (field(word, 27, 24), 4 * field(word, 19, 16));
        Control {
            l1: level(defaults.l1, 59, 55, l1_dist, defaults.l1_lines),
            l2: level(defaults.l2, 58, 54, l2_dist, defaults.l2_lines),
            injection: std::array::from_fn(|n| {
                Injection::new(registers.injection_ctrl[n], registers.injection_distance[n], defaults)
            }),
            tagged: defaults.tagged_pointers,
        }
    }

    /// The number of the injection registers that a pointer names, if tags steer here.
    #[inline(always)]
    #[must_use]
    pub fn injection_of(&self, steering: Steering) -> Option<usize> {
        steering.injection().filter(|_| self.tagged)
    }

    /// Distances of stream detect mode for an access through a pointer, L1 and L2, lines; 0: no prefetches.
    #[inline(always)]
    #[must_use]
    pub fn stream_lines(&self, steering: Steering) -> (u32, u32) {
        let steering = if self.tagged { steering } else { Steering::NONE };
        let lines = |level: StreamLevel, allowed: bool| if allowed { level.lines } else { 0 };
        (lines(self.l1, steering.l1()), lines(self.l2, steering.l2()))
    }

    /// The levels into which an access through a pointer may prefetch, L1 and L2, for policies that have no distances.
    #[inline(always)]
    #[must_use]
    pub fn levels(&self, steering: Steering) -> (bool, bool) {
        let steering = if self.tagged { steering } else { Steering::NONE };
        (self.l1.on && steering.l1(), self.l2.on && steering.l2())
    }

    /// What happens to a prefetch instruction through a pointer when a resource is busy.
    #[must_use]
    pub fn software(&self, steering: Steering) -> Reliableness {
        match self.injection_of(steering) {
            Some(n) if self.injection[n].valid => self.injection[n].software,
            Some(_) => Reliableness::Strong,
            None => Reliableness::weak_if(self.tagged && steering.weak_software()),
        }
    }
}

impl Injection {
    fn new(ctrl: u64, distance: u64, defaults: &Defaults) -> Injection {
        let level = |on: bool, weak: u32, (high, low): (u32, u32)| InjectionLevel {
            distance: if on { 4 * signed_field(distance, high, low) } else { 0 },
            reliableness: Reliableness::weak_if(bit(ctrl, weak)),
        };
        Injection {
            valid: bit(ctrl, 63),
            allocate: bit(ctrl, 60),
            l1: level(defaults.l1, 62, (56, 34)),
            l2: level(defaults.l2, 61, (24, 2)),
            offset: 4 * signed_field(ctrl, 24, 2),
            software: Reliableness::weak_if(bit(ctrl, 58)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::spec;
    use super::*;
    use crate::pointer::Pointer;

    const V: u64 = 1 << 63;

    fn defaults() -> Defaults {
        Defaults::from(&spec(6, 40))
    }

    fn stream(word: u64) -> Control {
        Control::new(&Registers { stream_detect: word, ..Registers::default() }, &defaults())
    }

    fn lines(word: u64) -> (u32, u32) {
        stream(word).stream_lines(Steering::NONE)
    }

    #[test]
    fn distances_are_lines_for_l1_and_four_lines_for_l2_and_zero_is_the_machines_own() {
        assert_eq!(lines(V | 4 << 24 | 5 << 16), (4, 20));
        assert_eq!(lines(V | 15 << 24 | 15 << 16), (15, 60));
        assert_eq!(lines(V | 9 << 24), (9, 40));
        assert_eq!(lines(V | 1 << 16), (6, 4));
    }

    #[test]
    fn nothing_that_is_set_counts_without_the_valid_bit() {
        assert_eq!(stream(!V), stream(0));
        assert_eq!(lines(!V), (6, 40));
    }

    #[test]
    fn each_level_has_a_bit_that_switches_it_off_whatever_the_pointer_says() {
        assert_eq!((lines(V | 1 << 59), lines(V | 1 << 58)), ((0, 40), (6, 0)));
        let no_l2 = Pointer::from(2 << 60).steering;
        assert_eq!(stream(V | 1 << 59).stream_lines(no_l2), (0, 0));
    }

    #[test]
    fn hardware_prefetches_are_strong_unless_their_levels_bit_makes_them_weak() {
        let both = |word| (stream(word).l1.reliableness, stream(word).l2.reliableness);
        use Reliableness::{Strong, Weak};
        assert_eq!([V, V | 1 << 55, V | 1 << 54].map(both), [(Strong, Strong), (Weak, Strong), (Strong, Weak)]);
    }

    #[test]
    fn injection_distances_and_offsets_are_signed_bytes_up_to_16_mib() {
        const MIB: i64 = 1 << 20;
        let injection = |ctrl: u64, distance: u64| Injection::new(ctrl, distance, &defaults());
        let i = injection(V | 1 << 60 | 512, 1024 << 32 | 10_240);
        assert_eq!((i.valid, i.allocate, i.offset, i.l1.distance, i.l2.distance), (true, true, 512, 1024, 10_240));
        let lowest = injection(1 << 24, 1 << 56 | 1 << 24);
        assert_eq!((lowest.offset, lowest.l1.distance, lowest.l2.distance), (-16 * MIB, -16 * MIB, -16 * MIB));
        let highest = injection(0x00ff_fffc, 0x00ff_fffc_00ff_fffc);
        assert_eq!((highest.offset, highest.l1.distance), (16 * MIB - 4, 16 * MIB - 4));
        assert_eq!(injection(0x1ff_fffc, 0).offset, -4);
    }

    #[test]
    fn a_prefetch_instruction_is_weak_by_bit_60_of_its_pointer_or_by_sww_of_its_injection_registers() {
        let mut registers = Registers::default();
        registers.injection_ctrl[3] = V | 1 << 58;
        registers.injection_ctrl[4] = 1 << 58; // not valid
        let tagged = Control::new(&registers, &defaults());
        let by = |control: Control, pf_func: u64| control.software(Pointer::from(pf_func << 60).steering);
        use Reliableness::{Strong, Weak};
        assert_eq!([0, 1, 6, 7].map(|f| by(tagged, f)), [Strong, Weak, Strong, Weak]);
        assert_eq!([8, 11, 12].map(|f| by(tagged, f)), [Strong, Weak, Strong]);
        let untagged = Control::new(&registers, &Defaults { tagged_pointers: false, ..defaults() });
        assert_eq!([1, 11].map(|f| by(untagged, f)), [Strong, Strong]);
    }
}
