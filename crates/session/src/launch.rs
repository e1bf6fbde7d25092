//! Where a program is, and how the ranks of a program with MPI are started.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use fxscope_linux::{default_sysroot, in_sysroot};
use fxscope_machine::Spec;
use object::elf::{DT_NEEDED, FileHeader64};
use object::read::elf::{Dyn as _, FileHeader as _};
use object::{LittleEndian, ReadCache};

use crate::Error;

/// The folders in which programs are searched for by name, in this order.
const FOLDERS: [&str; 4] = ["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin"];

/// Other names of commands: distributions with several installations of MPI have them under names of their own.
const OTHER_NAMES: [(&str, &[&str]); 2] = [
    ("mpirun", &["mpirun.openmpi", "orterun", "mpirun.mpich", "mpiexec.hydra"]),
    ("mpiexec", &["mpiexec.openmpi", "orterun", "mpiexec.mpich", "mpiexec.hydra"]),
];

/// An implementation of MPI, as far as its launcher is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Implementation {
    OpenMpi,
    Mpich,
}

impl Implementation {
    const ALL: [Implementation; 2] = [Implementation::OpenMpi, Implementation::Mpich];

    fn name(self) -> &'static str {
        match self {
            Implementation::OpenMpi => "Open MPI",
            Implementation::Mpich => "MPICH",
        }
    }

    /// Returns the names of its launcher.
    fn launchers(self) -> &'static [&'static str] {
        match self {
            Implementation::OpenMpi => &["mpirun.openmpi", "orterun"],
            Implementation::Mpich => &["mpiexec.hydra", "mpiexec.mpich"],
        }
    }

    /// Returns the beginnings of its libraries' names.
    fn libraries(self) -> &'static [&'static str] {
        match self {
            Implementation::OpenMpi => {
                &["libmpi.so.40", "libmpi_mpifh.so.40", "libmpi_usempif08.so.40", "libmpi_cxx.so.40"]
            }
            Implementation::Mpich => &["libmpich", "libmpi.so.12", "libmpifort.so.12", "libmpicxx.so.12"],
        }
    }

    /// Returns the launcher's arguments before the program: `cores` cores for each of `ranks` ranks; `None`: ranks stay where the
    /// launcher may run.
    fn arguments(self, ranks: u32, cores: Option<u32>) -> Vec<String> {
        let binding = match (self, cores) {
            (Implementation::OpenMpi, Some(cores)) => format!("--map-by slot:PE={cores} --bind-to core"),
            (Implementation::OpenMpi, None) => "--bind-to none --oversubscribe".to_owned(),
            (Implementation::Mpich, Some(cores)) => format!("-bind-to core:{cores} -map-by core:{cores}"),
            (Implementation::Mpich, None) => String::new(),
        };
        format!("-n {ranks} {binding}").split_whitespace().map(str::to_owned).collect()
    }
}

/// A program, and what belongs in front of its arguments and into its environment so that it starts ranks.
pub(crate) struct Launch {
    /// The launcher's file.
    pub launcher: PathBuf,
    /// Its arguments, the program of the ranks last.
    pub arguments: Vec<OsString>,
    /// Variables that it needs, and which apply if they are not set otherwise.
    pub variables: Vec<(OsString, OsString)>,
    /// What was chosen, for the reader.
    pub note: String,
}

/// Returns the file of a program: the path as given if there is one; otherwise a name is searched for in the folders of the sysroot,
/// and an absolute path in the sysroot. A path that leads nowhere is returned unchanged.
pub(crate) fn locate(sysroot: Option<&Path>, program: &Path) -> PathBuf {
    if program.exists() {
        return program.to_owned();
    }
    let sysroot = sysroot.map(Path::to_owned).or_else(default_sysroot);
    let Some(sysroot) = sysroot else { return program.to_owned() };
    let found = match program.to_str() {
        Some(name) if !name.contains('/') => named(&sysroot, name),
        _ if program.is_absolute() => in_sysroot(&sysroot, program),
        _ => None,
    };
    found.unwrap_or_else(|| program.to_owned())
}

/// Returns the file of a command in the folders of the sysroot.
fn named(sysroot: &Path, name: &str) -> Option<PathBuf> {
    let others = OTHER_NAMES.iter().find(|(known, _)| *known == name).map_or(&[][..], |(_, others)| others);
    let in_folders = |name: &str| FOLDERS.iter().find_map(|folder| in_sysroot(sysroot, &Path::new(folder).join(name)));
    std::iter::once(&name).chain(others).find_map(|name| in_folders(name))
}

/// Returns how `ranks` ranks of a program are started: by the launcher of the MPI that it is linked with, or of the one in the sysroot
/// if it is linked with none, such as a script. Each rank gets the same number of cores, all in one CMG; with CPUs that the user has
/// chosen, ranks stay on these.
///
/// # Errors
/// When there are more ranks than cores, or no launcher.
pub(crate) fn launch(
    sysroot: Option<&Path>,
    spec: &Spec,
    ranks: u32,
    program: &Path,
    chosen_cpus: bool,
) -> Result<Launch, Error> {
    let error = |why: String| Error::option(format!("ranks {ranks}"), why);
    let cores = cores_of_rank(spec, ranks).map_err(error)?;
    let linked = linked_with(program);
    let sysroot = sysroot.map(Path::to_owned).or_else(default_sysroot);
    let found =
        Implementation::ALL.into_iter().filter(|mpi| linked.is_none_or(|linked| linked == *mpi)).find_map(|mpi| {
            let launcher = mpi.launchers().iter().find_map(|name| named(sysroot.as_deref()?, name))?;
            Some((mpi, launcher))
        });
    let Some((mpi, launcher)) = found else {
        let which = linked.map_or("MPI", Implementation::name);
        let place = sysroot.map_or("no sysroot".to_owned(), |sysroot| sysroot.display().to_string());
        return Err(error(format!(
            "there is no launcher of {which} in {place}; install it for arm64 in a sysroot and name that with --sysroot"
        )));
    };
    let cores = (!chosen_cpus).then_some(cores);
    let mut arguments: Vec<OsString> = mpi.arguments(ranks, cores).into_iter().map(OsString::from).collect();
    // A launcher searches for names without a folder.
    let is_name = program.components().count() == 1 && !program.is_absolute();
    arguments.push(if is_name { Path::new(".").join(program).into() } else { program.into() });
    let variables = cores.map(|cores| ("OMP_NUM_THREADS".into(), cores.to_string().into())).into_iter().collect();
    let placed = match cores {
        Some(1) => ", a core for each".to_owned(),
        Some(cores) => format!(", {cores} cores of a CMG and OMP_NUM_THREADS={cores} for each"),
        None => " on the CPUs given".to_owned(),
    };
    let note = format!("{} of {} starts {ranks} ranks{placed}.", launcher.display(), mpi.name());
    Ok(Launch { launcher, arguments, variables, note })
}

/// Returns the cores of each rank: ranks are spread evenly over the CMGs, and those of a CMG share its cores.
fn cores_of_rank(spec: &Spec, ranks: u32) -> Result<u32, String> {
    let (cmgs, cores_per_cmg) = (spec.topology.cmgs, spec.topology.cores_per_cmg);
    let in_cmg = ranks.div_ceil(cmgs.max(1)).max(1);
    match cores_per_cmg / in_cmg {
        0 => Err(format!(
            "the machine has {} cores, and ranks that share a core wait for each other's time slices; start the launcher \
             yourself, such as fxscope run -- mpirun -n {ranks} --oversubscribe --bind-to none PROGRAM",
            cmgs * cores_per_cmg
        )),
        cores => Ok(cores),
    }
}

/// Returns the variables that Open MPI needs, if the program is its launcher or linked with it. The launcher refuses to run as root
/// without being told. Session folders are named by process numbers, which are the same in every run: in the host's `/tmp`, runs at
/// the same time would use each other's.
pub(crate) fn variables_of_open_mpi(program: &Path) -> Vec<(OsString, OsString)> {
    let launchers = ["mpirun", "mpiexec", "orterun", "mpirun.openmpi", "mpiexec.openmpi"];
    let is_launcher = program.file_name().and_then(OsStr::to_str).is_some_and(|name| launchers.contains(&name));
    if !is_launcher && linked_with(program) != Some(Implementation::OpenMpi) {
        return Vec::new();
    }
    let as_root = [("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")];
    let variables = as_root.into_iter().filter(|_| is_root()).chain([("OMPI_MCA_orte_tmpdir_base", "/dev/shm")]);
    variables.map(|(name, value)| (name.into(), value.into())).collect()
}

/// Returns whether this process, and with it the guest, runs as root.
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns the implementation of MPI whose library a program names; `None`: it names none, or is no program.
fn linked_with(program: &Path) -> Option<Implementation> {
    // To open a named pipe would wait for its other end.
    let file = program.is_file().then(|| std::fs::File::open(program).ok())??;
    let cache = ReadCache::new(file);
    let needed = needed(&cache).unwrap_or_default();
    let names = |mpi: &Implementation| {
        let is_library =
            |name: &OsString| mpi.libraries().iter().any(|library| name.as_bytes().starts_with(library.as_bytes()));
        needed.iter().any(is_library)
    };
    Implementation::ALL.into_iter().find(names)
}

/// Returns the libraries that a program names.
fn needed(data: &ReadCache<std::fs::File>) -> object::Result<Vec<OsString>> {
    let header = FileHeader64::<LittleEndian>::parse(data)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, data)?;
    let Some((dynamic, link)) = sections.dynamic(endian, data)? else { return Ok(Vec::new()) };
    let strings = sections.strings(endian, data, link)?;
    let names = dynamic.iter().filter(|entry| entry.d_tag(endian) == DT_NEEDED);
    Ok(names
        .filter_map(|entry| strings.get(entry.d_val(endian) as u32).ok())
        .map(|name| OsStr::from_bytes(name).to_owned())
        .collect())
}

#[cfg(test)]
mod tests {
    use super::{cores_of_rank, locate, variables_of_open_mpi};
    use std::path::Path;

    #[test]
    fn ranks_are_spread_over_the_cmgs_and_share_the_cores_of_each() {
        let spec = fxscope_machine::load("a64fx", &[]).expect("built in");
        let cores = [1, 2, 4, 5, 8, 12, 16, 24, 48].map(|ranks| cores_of_rank(&spec, ranks).expect("enough cores"));
        assert_eq!(cores, [12, 12, 12, 6, 6, 4, 3, 2, 1]);
        let why = cores_of_rank(&spec, 49).expect_err("too many");
        assert!(why.contains("48 cores") && why.contains("--oversubscribe"), "{why}");
    }

    #[test]
    fn names_and_absolute_paths_are_found_in_the_sysroot_and_links_stay_inside() {
        let root = tempfile::tempdir().expect("temporary folder");
        let bin = root.path().join("usr/bin");
        std::fs::create_dir_all(&bin).expect("made");
        std::fs::write(bin.join("orterun"), "").expect("written");
        std::fs::create_dir_all(root.path().join("etc/alternatives")).expect("made");
        std::os::unix::fs::symlink("/etc/alternatives/tool", bin.join("tool")).expect("linked");
        std::os::unix::fs::symlink("/usr/bin/orterun", root.path().join("etc/alternatives/tool")).expect("linked");
        let at = |name: &str| locate(Some(root.path()), Path::new(name));
        let file = root.path().canonicalize().expect("there").join("usr/bin/orterun");
        for name in ["mpirun", "mpiexec", "orterun", "tool", "/usr/bin/orterun", "/usr/bin/tool"] {
            assert_eq!(at(name).canonicalize().ok().as_ref(), Some(&file), "{name}");
        }
        for missing in ["nothing", "/usr/bin/nothing", "usr/bin/orterun"] {
            assert_eq!(at(missing), Path::new(missing));
        }
    }

    #[test]
    fn launchers_of_open_mpi_keep_their_session_folders_in_the_run_s_own_memory() {
        let folder = |program: &str| {
            let variables = variables_of_open_mpi(Path::new(program));
            variables.into_iter().find(|(name, _)| name == "OMPI_MCA_orte_tmpdir_base").map(|(_, folder)| folder)
        };
        assert_eq!(folder("/opt/bin/mpirun").as_deref(), Some("/dev/shm".as_ref()));
        assert_eq!(folder("/bin/true"), None);
    }
}
