//! What to run, on which machine, with which settings.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use fxscope_machine::{LoadError, Spec, settings::size};
use fxscope_record::{ALL, Run};
use serde::{Deserialize, Serialize};

use crate::environment::guest_environment;
use crate::launch::{launch, locate, variables_of_open_mpi};
use crate::sectors::SectorOption;
use crate::{
    CallPages, Error, HostAccess, Placement, Prepared, RemoteNode, Request, RunOptions, machine_memory, serial, tiers,
};

/// The default machine.
pub const DEFAULT_MACHINE: &str = "a64fx";

/// What to run, on which machine, with which settings: everything that affects a run's counts, as plain data.
///
/// [`Scenario::prepare`] checks it and loads its machine.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// The program's file.
    pub program: PathBuf,
    /// Its arguments, without its name.
    #[serde(default, with = "serial::words")]
    pub arguments: Vec<OsString>,
    /// Ranks: the program is started that often, by the launcher of its MPI; `None`: it is started itself.
    #[serde(default)]
    pub ranks: Option<u32>,
    /// Variables of its environment. Of several with one name the last applies.
    #[serde(default, with = "serial::variables")]
    pub variables: Vec<(OsString, OsString)>,
    /// Also pass on the variables of this process that [`guest_environment`] names.
    #[serde(default)]
    pub inherit_environment: bool,
    /// The machine: a built-in name, or the path of a machine's folder or file.
    #[serde(default = "default_machine")]
    pub machine: String,
    /// Settings of the machine's description, by key. Later ones override earlier ones.
    #[serde(default)]
    pub settings: Vec<(String, String)>,
    /// Settings that override all others.
    #[serde(default)]
    pub overrides: Vec<(String, String)>,
    /// CPUs, memory nodes and page sizes.
    #[serde(default)]
    pub placement: Placement,
    /// The sector cache: ways of sectors, and data assigned to them.
    #[serde(default)]
    pub sectors: Vec<SectorOption>,
    /// What the program may access on the host.
    #[serde(default)]
    pub access: HostAccess,
    /// Bytes of memory the program may use; `None`: all that the machine has.
    #[serde(default)]
    pub memory: Option<u64>,
    /// How the program is simulated.
    #[serde(default)]
    pub options: RunOptions,
}

fn default_machine() -> String {
    DEFAULT_MACHINE.to_owned()
}

impl Scenario {
    /// Returns a run of `program` with full timing on an A64FX, without arguments and environment.
    #[must_use]
    pub fn new(program: impl Into<PathBuf>) -> Scenario {
        Scenario {
            program: program.into(),
            arguments: Vec::new(),
            ranks: None,
            variables: Vec::new(),
            inherit_environment: false,
            machine: default_machine(),
            settings: Vec::new(),
            overrides: Vec::new(),
            placement: Placement::default(),
            sectors: Vec::new(),
            access: HostAccess::default(),
            memory: None,
            options: RunOptions::default(),
        }
    }

    /// Returns a scenario that repeats a recorded `run`: its program and arguments on its machine, with its settings
    /// and variables. Records keep no other options.
    #[must_use]
    pub fn repeating(run: &Run) -> Scenario {
        Scenario {
            arguments: run.command.iter().skip(1).map(OsString::from).collect(),
            variables: run.environment.iter().map(|(name, value)| (name.into(), value.into())).collect(),
            machine: machine_of(run).to_owned(),
            settings: run.settings.clone(),
            ..Scenario::new(run.program())
        }
    }

    /// Sets the arguments.
    #[must_use]
    pub fn with_arguments(mut self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Scenario {
        self.arguments = arguments.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the machine.
    #[must_use]
    pub fn with_machine(mut self, machine: impl Into<String>) -> Scenario {
        self.machine = machine.into();
        self
    }

    /// Adds a setting of the machine.
    #[must_use]
    pub fn with_setting(mut self, key: impl Into<String>, value: impl Into<String>) -> Scenario {
        self.settings.push((key.into(), value.into()));
        self
    }

    /// Sets page sizes in bytes by segment, which override all other settings.
    #[must_use]
    pub fn with_pages(mut self, sizes: impl IntoIterator<Item = (&'static str, u64)>) -> Scenario {
        self.overrides.retain(|(key, _)| !is_page_key(key));
        let setting = |(segment, bytes)| (format!("pages.{segment}"), size(bytes));
        self.overrides.extend(sizes.into_iter().map(setting));
        self
    }

    /// Removes page sizes, leaving those of the machine and the program's variables.
    #[must_use]
    pub fn without_pages(mut self) -> Scenario {
        self.settings.retain(|(key, _)| !is_page_key(key));
        self.placement.pages.clear();
        self
    }

    /// Adds page sizes for the mappings of these calls.
    #[must_use]
    pub fn with_call_pages(mut self, calls: impl IntoIterator<Item = CallPages>) -> Scenario {
        self.placement.add_call_pages(calls);
        self
    }

    /// Adds `ns` nanoseconds in all to the described memory latency.
    #[must_use]
    pub fn with_added_ns(mut self, ns: f64) -> Scenario {
        self.overrides.push(("memory.added_ns".to_owned(), ns.to_string()));
        self
    }

    /// Adds counts by intervals of `interval_ns` nanoseconds, of a region if one is named.
    #[must_use]
    pub fn with_intervals(mut self, interval_ns: Option<u64>, region: Option<&str>) -> Scenario {
        self.options.interval_ns = interval_ns;
        self.options.interval_region = region.filter(|&region| region != ALL).map(str::to_owned);
        self
    }

    /// Adds variables to the program's environment.
    #[must_use]
    pub fn with_variables(mut self, variables: &[(&str, &str)]) -> Scenario {
        self.variables.extend(variables.iter().map(|&(name, value)| (name.into(), value.into())));
        self
    }

    /// Interleaves pages over all nodes.
    #[must_use]
    pub fn with_interleaving(mut self) -> Scenario {
        self.placement.interleave = Some("all".to_owned());
        self
    }

    /// Restricts memory to this node.
    #[must_use]
    pub fn with_memory_of(mut self, node: u32) -> Scenario {
        self.placement.membind = Some(node.to_string());
        self
    }

    /// Returns the program's name and its arguments.
    #[must_use]
    pub fn command(&self) -> Vec<OsString> {
        std::iter::once(self.program.clone().into_os_string()).chain(self.arguments.iter().cloned()).collect()
    }

    /// Returns the node farthest from the cores that the program may run on.
    ///
    /// # Errors
    /// If there is no such node, the placement already fixes the memory, or the machine cannot be loaded.
    pub fn farthest_node(&self) -> Result<RemoteNode, Error> {
        if self.placement.places_memory() {
            return Err(Error::NoRemoteNode("options already place the program's memory"));
        }
        self.placement.farthest_node(&self.spec()?)
    }

    /// Returns the machine with all settings.
    ///
    /// # Errors
    /// If it cannot be loaded, or a setting does not fit it.
    pub fn spec(&self) -> Result<Spec, Error> {
        Ok(self.load()?.0)
    }

    /// Returns the machine and its settings.
    fn load(&self) -> Result<(Spec, Vec<(String, String)>), Error> {
        if !self.placement.pages.is_empty() {
            self.placement.check_pages(&fxscope_machine::load(&self.machine, &self.settings)?)?;
        }
        let settings = self.all_settings()?;
        Ok((fxscope_machine::load(&self.machine, &settings)?, settings))
    }

    /// Returns the machine without any setting of page sizes.
    ///
    /// # Errors
    /// As for [`Scenario::spec`].
    pub fn spec_of_default_pages(&self) -> Result<Spec, Error> {
        let others: Vec<_> = self.all_settings()?.into_iter().filter(|(key, _)| !is_page_key(key)).collect();
        Ok(fxscope_machine::load(&self.machine, &others)?)
    }

    /// Returns the bytes of memory that the program may use on `spec`.
    ///
    /// # Errors
    /// If the machine has less than requested.
    pub fn memory_bytes(&self, spec: &Spec) -> Result<u64, Error> {
        let all = machine_memory(spec);
        match self.memory {
            Some(bytes) if bytes > all => Err(Error::option(
                format!("memory {bytes}"),
                format!(
                    "{} has {all} bytes; reduce --memory, or increase it with --set topology.node_bytes=SIZE",
                    spec.name
                ),
            )),
            memory => Ok(memory.unwrap_or(all)),
        }
    }

    /// Returns the settings of the machine from all fields, later ones overriding earlier ones.
    fn all_settings(&self) -> Result<Vec<(String, String)>, Error> {
        let mut all: Vec<_> = self.settings.iter().cloned().chain(self.placement.settings()).collect();
        all.extend(self.overrides.iter().cloned());
        if !self.placement.tiers.is_empty() {
            let spec = fxscope_machine::load(&self.machine, &all)?;
            all.extend(tiers::settings(&self.placement.tiers, &spec));
        }
        if SectorOption::limits_ways(&self.sectors) {
            let spec = fxscope_machine::load(&self.machine, &all)?;
            all.extend(SectorOption::settings(&self.sectors, &spec, &self.placement.cmgs(&spec)?)?);
        }
        Ok(all)
    }

    /// Checks the scenario and loads its machine.
    ///
    /// # Errors
    /// If the machine cannot be loaded, or an option fits neither it nor the host.
    pub fn prepare(&self) -> Result<Prepared, Error> {
        let (spec, settings) = self.load()?;
        let spec = Arc::new(spec);
        self.check_host_threads(&spec)?;
        self.check_sampling()?;
        self.check_part()?;
        self.check_jobs()?;
        self.check_heap_blocks()?;
        self.check_times()?;
        self.placement.check_fast_memory(&spec)?;
        self.check_tiering(&spec)?;
        let places = self.placement.places(&spec)?;
        if let Some(sysroot) = self.options.sysroot.as_ref().filter(|folder| !folder.is_dir()) {
            let why = "not a folder; name one that holds lib or usr/lib";
            return Err(Error::option(format!("sysroot {}", sysroot.display()), why));
        }
        let sector_data = SectorOption::data(&self.sectors, &spec)?;
        let memory_bytes = self.memory_bytes(&spec)?;
        let started = self.started(&spec)?;
        let request = Request {
            settings,
            name: started.name,
            arguments: started.arguments,
            environment: started.environment,
            notes: started.note.into_iter().collect(),
            recorded_variables: self.variables.iter().map(|(name, _)| name.clone()).collect(),
            access: self.access.resolve()?,
            cpus: self.placement.cpus(&spec)?,
            memory_policy: self.placement.policy(&spec)?,
            fast_memory: self.placement.fast_memory,
            memory_bytes: self.memory.map(|_| memory_bytes),
            options: self.options.clone(),
            ..Request::new(spec, started.program)
        };
        let sector_blocks = SectorOption::blocks(&self.sectors);
        Ok(Prepared::new(request, sector_data, sector_blocks, self.placement.call_pages(), places))
    }

    /// Returns what is started first: the program, or the launcher of its ranks.
    fn started(&self, spec: &Spec) -> Result<Started, Error> {
        let sysroot = self.options.sysroot.as_deref();
        let program = locate(sysroot, &self.program);
        let mut environment = self.environment();
        let mut add = |variables: Vec<(OsString, OsString)>| {
            for (name, value) in variables {
                if !environment.iter().any(|(known, _)| *known == name) {
                    environment.push((name, value));
                }
            }
        };
        let Some(ranks) = self.ranks else {
            add(variables_of_open_mpi(&program));
            // Programs with several names, such as BusyBox, do what the name says by which they were called.
            let name = Some(self.program.clone().into_os_string());
            return Ok(Started { program, name, arguments: self.arguments.clone(), environment, note: None });
        };
        let launch = launch(sysroot, spec, ranks, &program, self.placement.cpus.is_some())?;
        add(launch.variables);
        add(variables_of_open_mpi(&launch.launcher));
        let arguments = launch.arguments.into_iter().chain(self.arguments.iter().cloned()).collect();
        Ok(Started { program: launch.launcher, name: None, arguments, environment, note: Some(launch.note) })
    }

    /// Returns the program's environment.
    pub(crate) fn environment(&self) -> Vec<(OsString, OsString)> {
        if self.inherit_environment {
            guest_environment(std::env::vars_os(), &self.variables)
        } else {
            guest_environment(std::iter::empty(), &self.variables)
        }
    }
}

/// What a run starts first.
struct Started {
    program: PathBuf,
    name: Option<OsString>,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    note: Option<String>,
}

fn is_page_key(key: &str) -> bool {
    key.starts_with("pages.")
}

/// Returns the name or path of a run's machine, for [`Scenario::machine`].
#[must_use]
pub fn machine_of(run: &Run) -> &str {
    run.description.as_ref().and_then(|description| description.path.as_deref()).unwrap_or(&run.machine)
}

/// Returns the machine of a recorded run, as currently described; `machine` names another description of it.
///
/// # Errors
/// If it cannot be loaded with the run's settings.
pub fn spec_of(run: &Run, machine: Option<&str>) -> Result<Spec, LoadError> {
    fxscope_machine::load(machine.unwrap_or(machine_of(run)), &run.settings)
}
