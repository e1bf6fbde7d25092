//! Fetch ports and store ports: queues that keep the order of loads and stores (manual 7.3).

use fxscope_calendar::Cycle;

/// Ports that are taken and released in program order.
///
/// A virtual port is taken at dispatch. The real ports are a window over the virtual ones: what issues needs a port
/// less than a window's length behind the oldest one in use.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub struct Ports {
    /// When each of the last virtual ports is released; a power of two of them, to be indexed with a mask.
    times: Box<[Cycle]>,
    next: usize,
    real: usize,
    of: usize,
    last: Cycle,
}

impl Ports {
    /// `real` ports in a window over `of` virtual ones.
    #[must_use]
    pub fn new(real: u32, of: u32) -> Ports {
        let real = real.max(1) as usize;
        let of = real.max(of as usize);
        Ports { times: vec![0; of.next_power_of_two()].into(), next: 0, real, of, last: 0 }
    }

    /// When the next `n` accesses (at least one) may issue: the real ports of earlier ones are released in order.
    #[inline(always)]
    #[must_use]
    pub fn real_free(&self, n: u8) -> Cycle {
        self.port_before(self.real, n)
    }

    /// When the next `n` accesses (at least one) may be dispatched.
    #[inline(always)]
    #[must_use]
    pub fn virtual_free(&self, n: u8) -> Cycle {
        self.port_before(self.of, n)
    }

    /// When the port `window` places before the last of `n` new ports is released.
    #[inline(always)]
    fn port_before(&self, window: usize, n: u8) -> Cycle {
        let ahead = usize::from(n.max(1) - 1).min(window - 1);
        self.times[(self.next + ahead).wrapping_sub(window) & (self.times.len() - 1)]
    }

    /// Moves the state `cycles` later.
    pub fn fast_forward(&mut self, cycles: Cycle) {
        self.last += cycles;
        self.times.iter_mut().for_each(|t| *t += cycles);
    }

    /// Takes `n` ports. They are released at `until`, or later with the port before them.
    #[inline(always)]
    pub fn take(&mut self, n: u8, until: Cycle) {
        self.last = self.last.max(until);
        for _ in 0..n {
            let place = self.next & (self.times.len() - 1);
            self.times[place] = self.last;
            self.next = place + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_port_waits_for_the_one_a_window_before() {
        let mut p = Ports::new(2, 4);
        p.take(1, 10);
        p.take(1, 30);
        assert_eq!((p.real_free(1), p.real_free(2)), (10, 30));
        assert_eq!((p.virtual_free(1), p.virtual_free(2), p.virtual_free(3)), (0, 0, 10));
        assert_eq!((p.real_free(0), p.real_free(9)), (10, 30), "at least one, and all of them at most");
    }

    #[test]
    fn ports_are_given_back_in_order() {
        let mut p = Ports::new(2, 2);
        p.take(1, 50);
        p.take(1, 20);
        p.take(0, 90);
        assert_eq!((p.real_free(1), p.real_free(2)), (50, 50));
    }
}
