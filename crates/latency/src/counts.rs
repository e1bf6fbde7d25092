//! What was counted, whatever counted it.

macro_rules! quantities {
    ($($(#[$doc:meta])* $variant:ident = $key:literal, $title:literal;)+) => {
        /// Something that methods need to know.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Quantity {
            $($(#[$doc])* $variant,)+
        }

        impl Quantity {
            /// All of them, in order.
            pub const ALL: &[Quantity] = &[$(Quantity::$variant,)+];
            /// How many there are.
            pub const COUNT: usize = Quantity::ALL.len();

            /// Its name in `inputs.toml` and in JSON.
            #[must_use]
            pub const fn key(self) -> &'static str {
                match self { $(Quantity::$variant => $key,)+ }
            }

            /// Its name for people.
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
    /// Lines that the last level of cache before memory (or before a memory-side cache) did not have.
    Misses = "misses", "last-level cache misses";
    /// Lines read and written at the memory controllers.
    Accesses = "accesses", "memory accesses at the controllers";
    /// Lines that the last level of cache wrote back.
    WrittenBack = "written_back", "lines written back by the last-level cache";
    /// Reads that a memory-side cache did not have.
    CacheMisses = "cache_misses", "misses of the memory-side cache";
    /// Reads of memory that are outstanding, summed over core cycles.
    Outstanding = "outstanding", "outstanding reads, summed over cycles";
    /// Misses of the last level that are outstanding, prefetches among them, summed over core cycles.
    InFlight = "in_flight", "outstanding last-level misses, summed over cycles";
    /// Misses that were prefetches.
    Prefetched = "prefetched", "last-level misses of prefetches";
    /// … of the hardware.
    HardwarePrefetched = "hardware_prefetched", "last-level misses of hardware prefetches";
    /// Cycles in which nothing commits because the oldest instruction waits for memory.
    MemoryWait = "memory_wait", "cycles waiting for memory";
    /// Cycles in which nothing commits because the oldest instruction is a memory access that is not complete.
    AccessWait = "access_wait", "cycles waiting for memory accesses of any kind";
    /// Cycles in which nothing is in flight because stores find no room.
    StoreWait = "store_wait", "cycles waiting for stores";
    /// Lines that instructions zero whole, without reading them.
    Zeroed = "zeroed", "lines zeroed";
    /// Lines that L1 did not have.
    L1Misses = "l1_misses", "L1 misses";
    /// L1 misses that are outstanding, summed over core cycles.
    L1Outstanding = "l1_outstanding", "outstanding L1 misses, summed over cycles";
}

/// What a run, a part or an interval of it counted, all threads together.
#[derive(Clone, Debug, PartialEq, serde::Deserialize, serde::Serialize)]
pub struct Counts {
    /// How long it took, seconds.
    pub seconds: f64,
    /// Cores that worked at a time, on average.
    pub threads: f64,
    values: [Option<f64>; Quantity::COUNT],
}

impl Counts {
    /// Nothing counted yet.
    #[must_use]
    pub fn new(seconds: f64, threads: f64) -> Counts {
        Counts { seconds, threads, values: [None; Quantity::COUNT] }
    }

    /// The same with a count.
    #[must_use]
    pub fn with(mut self, quantity: Quantity, value: f64) -> Counts {
        self.set(quantity, Some(value));
        self
    }

    /// Puts a count in, or takes it away.
    pub fn set(&mut self, quantity: Quantity, value: Option<f64>) {
        self.values[quantity as usize] = value;
    }

    /// A count; `None` when it was not counted.
    #[must_use]
    pub fn get(&self, quantity: Quantity) -> Option<f64> {
        self.values[quantity as usize]
    }

    /// What the mean thread has of a count.
    #[must_use]
    pub fn of_thread(&self, quantity: Quantity) -> Option<f64> {
        Some(self.get(quantity)? / self.threads)
    }

    /// A count for each cycle of a core; `None` when one of the two is not known or there are no cycles.
    #[must_use]
    pub fn each_cycle(&self, quantity: Quantity) -> Option<f64> {
        let cycles = self.get(Quantity::Cycles).filter(|&cycles| cycles > 0.0)?;
        Some(self.get(quantity)? / cycles)
    }

    /// A count as a share of another; `None` when one is not known or the other is none.
    #[must_use]
    pub fn share(&self, part: Quantity, whole: Quantity) -> Option<f64> {
        let whole = self.get(whole).filter(|&whole| whole > 0.0)?;
        Some(self.get(part)? / whole)
    }
}
