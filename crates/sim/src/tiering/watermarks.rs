//! Watermarks of free fast memory.

use fxscope_machine::Spec;

/// Fewest and most bytes that Linux keeps free for itself unless told otherwise (`init_per_zone_wmark_min`).
const LEAST: u64 = 128 << 10;
const MOST: u64 = 256 << 20;

/// Bytes of free fast memory at which the system acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Watermarks {
    /// With less, reclaim begins.
    pub(super) low: u64,
    /// A promotion must leave this.
    pub(super) high: u64,
    /// Reclaim continues until this is free.
    pub(super) promote: u64,
    /// With more than this, heat does not matter.
    pub(super) ample: u64,
}

impl Watermarks {
    /// Returns those of `bytes` of fast memory. As in Linux, the lowest one is the root of 16 times its KiB; the following ones, *low*,
    /// *high* and *promote*, have a distance of a quarter of that, or of a share of the memory.
    pub(super) fn of(bytes: u64, spec: &Spec) -> Watermarks {
        let t = &spec.tiering;
        let least = (((bytes >> 10) * 16).isqrt() << 10).clamp(LEAST, MOST);
        let share = |share: f64| (bytes as f64 * share) as u64;
        let step = (least / 4).max(share(t.watermark_share));
        let (low, high, promote) = (least + step, least + 2 * step, least + 3 * step);
        Watermarks { low, high, promote, ample: promote + t.ample_bytes.max(share(t.ample_share)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watermarks_of_a_node_of_8_gib_are_those_of_linux() {
        let spec = fxscope_machine::load("a64fx", &[]).expect("built in");
        let marks = Watermarks::of(8 << 30, &spec);
        // The root of 16 · 8 Mi KiB is 11,585 KiB; a quarter of that is less than a thousandth of 8 GiB.
        let step = (8u64 << 30) / 1000;
        assert_eq!([marks.low, marks.high], [1, 2].map(|steps| (11_585 << 10) + steps * step));
        assert_eq!((marks.promote - marks.high, marks.ample - marks.promote), (step, 1 << 30));
    }

    #[test]
    fn of_a_large_memory_a_sixteenth_is_ample() {
        let spec = fxscope_machine::load("a64fx", &[]).expect("built in");
        let marks = Watermarks::of(64 << 30, &spec);
        assert_eq!(marks.ample - marks.promote, 4 << 30);
    }
}
