//! Counts as the methods use them, whatever counted them.

macro_rules! quantities {
    ($($(#[$doc:meta])* $variant:ident = $key:literal, $title:literal;)+) => {
        /// A quantity that methods use.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Quantity {
            $($(#[$doc])* $variant,)+
        }

        impl Quantity {
            /// All quantities, in order.
            pub const ALL: &[Quantity] = &[$(Quantity::$variant,)+];
            /// Number of quantities.
            pub const COUNT: usize = Quantity::ALL.len();

            /// Returns its name in `inputs.toml` and in JSON.
            #[must_use]
            pub const fn key(self) -> &'static str {
                match self { $(Quantity::$variant => $key,)+ }
            }

            /// Returns its name for people.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self { $(Quantity::$variant => $title,)+ }
            }
        }
    };
}

quantities! {
    /// Cycles of all cores that worked.
    Cycles = "cycles", "core cycles";
    /// Misses of the last-level cache before memory (or before a memory-side cache), in lines.
    Misses = "misses", "last-level cache misses";
    /// Lines read and written at the memory controllers.
    Accesses = "accesses", "memory accesses at the controllers";
    /// Lines that the last level of cache wrote back.
    WrittenBack = "written_back", "lines written back by the last-level cache";
    /// Reads that miss the memory-side cache.
    CacheMisses = "cache_misses", "misses of the memory-side cache";
    /// Outstanding reads of memory, summed over core cycles.
    Outstanding = "outstanding", "outstanding reads, summed over cycles";
    /// Outstanding misses of the last level, including prefetches, summed over core cycles.
    InFlight = "in_flight", "outstanding last-level misses, summed over cycles";
    /// Misses that were prefetches.
    Prefetched = "prefetched", "last-level misses of prefetches";
    /// … by hardware.
    HardwarePrefetched = "hardware_prefetched", "last-level misses of hardware prefetches";
    /// Cycles without commit because the oldest instruction waits for memory.
    MemoryWait = "memory_wait", "cycles waiting for memory";
    /// Cycles without commit because the oldest instruction is an incomplete memory access.
    AccessWait = "access_wait", "cycles waiting for memory accesses of any kind";
    /// Cycles in which nothing is in flight because the store buffers are full.
    StoreWait = "store_wait", "cycles waiting for stores";
    /// Lines zeroed as a whole by instructions, without a read.
    Zeroed = "zeroed", "lines zeroed";
    /// L1 misses, in lines.
    L1Misses = "l1_misses", "L1 misses";
    /// Outstanding L1 misses, summed over core cycles.
    L1Outstanding = "l1_outstanding", "outstanding L1 misses, summed over cycles";
    /// Demand misses of the last level that main memory serves, in lines; those of stores among them.
    MainDemanded = "main_demanded", "demand misses that main memory serves";
    /// … those of stores.
    MainStores = "main_stores", "misses of stores that main memory serves";
    /// Cycles in which a core has at least one load's miss of the last level outstanding.
    LoadCycles = "load_cycles", "cycles with outstanding misses of loads";
    /// … one that main memory serves.
    MainLoadCycles = "main_load_cycles", "cycles with outstanding misses of loads that main memory serves";
    /// How often such cycles begin after cycles without.
    MainLoadBursts = "main_load_bursts", "bursts of misses of loads that main memory serves";
    /// Cycles in which a core has at least one instruction fetch outstanding that main memory serves.
    MainCodeCycles = "main_code_cycles", "cycles with outstanding instruction fetches that main memory serves";
}

/// Counts of a run, a part or an interval of it, all threads together.
#[derive(Clone, Debug, PartialEq, serde::Deserialize, serde::Serialize)]
pub struct Counts {
    /// Duration, seconds.
    pub seconds: f64,
    /// Mean number of cores that worked at a time.
    pub threads: f64,
    values: [Option<f64>; Quantity::COUNT],
}

impl Counts {
    /// Returns empty counts.
    #[must_use]
    pub fn new(seconds: f64, threads: f64) -> Counts {
        Counts { seconds, threads, values: [None; Quantity::COUNT] }
    }

    /// Adds a count.
    #[must_use]
    pub fn with(mut self, quantity: Quantity, value: f64) -> Counts {
        self.set(quantity, Some(value));
        self
    }

    /// Sets or removes a count.
    pub fn set(&mut self, quantity: Quantity, value: Option<f64>) {
        self.values[quantity as usize] = value;
    }

    /// Returns a count; `None` if it was not counted.
    #[must_use]
    pub fn get(&self, quantity: Quantity) -> Option<f64> {
        self.values[quantity as usize]
    }

    /// Returns a count per thread, on average.
    #[must_use]
    pub fn of_thread(&self, quantity: Quantity) -> Option<f64> {
        Some(self.get(quantity)? / self.threads)
    }

    /// Returns a count per core cycle; `None` if either is unknown or there are no cycles.
    #[must_use]
    pub fn each_cycle(&self, quantity: Quantity) -> Option<f64> {
        let cycles = self.get(Quantity::Cycles).filter(|&cycles| cycles > 0.0)?;
        Some(self.get(quantity)? / cycles)
    }

    /// Returns a count as a fraction of another; `None` if either is unknown or the other is 0.
    #[must_use]
    pub fn share(&self, part: Quantity, whole: Quantity) -> Option<f64> {
        let whole = self.get(whole).filter(|&whole| whole > 0.0)?;
        Some(self.get(part)? / whole)
    }
}
