/* A shared library with the functions by which programs mark regions for measuring tools, and those they call around
 * that. They do nothing: fxscope recognises the calls by their names. It replaces the tools' own libraries where
 * they are missing (crates/linux/src/vfs/libraries.rs).
 */
#define MARK(name)  \
    int name(void); \
    int name(void)  \
    {               \
        return 0;   \
    }

/* Fujitsu's profilers, fapp and fipp, and the interface of the K computer's. */
MARK(fapp_start) MARK(fapp_stop) MARK(fapp_start_) MARK(fapp_stop_)
MARK(fipp_start) MARK(fipp_stop) MARK(fipp_start_) MARK(fipp_stop_)
MARK(start_collection) MARK(stop_collection) MARK(start_collection_) MARK(stop_collection_)

/* PAPI: high-level regions. */
MARK(PAPI_hl_region_begin) MARK(PAPI_hl_region_end) MARK(PAPI_hl_read) MARK(PAPI_hl_stop)
MARK(papif_hl_region_begin_) MARK(papif_hl_region_end_) MARK(papif_hl_read_) MARK(papif_hl_stop_)
MARK(PAPI_thread_init)

/* Programs compare the answer with the version they ask for. */
int PAPI_library_init(int version);
int PAPI_library_init(int version)
{
    return version;
}

/* LIKWID: the marker API. */
MARK(likwid_markerInit) MARK(likwid_markerThreadInit) MARK(likwid_markerClose) MARK(likwid_markerNextGroup)
MARK(likwid_markerRegisterRegion) MARK(likwid_markerResetRegion)
MARK(likwid_markerStartRegion) MARK(likwid_markerStopRegion)
MARK(likwid_markerinit_) MARK(likwid_markerthreadinit_) MARK(likwid_markerclose_) MARK(likwid_markernextgroup_)
MARK(likwid_markerregisterregion_) MARK(likwid_markerresetregion_)
MARK(likwid_markerstartregion_) MARK(likwid_markerstopregion_)

/* Nothing was measured for the program itself. */
void likwid_markerGetRegion(const char *region, int *events, double *counts, double *time, int *calls);
void likwid_markerGetRegion(const char *region, int *events, double *counts, double *time, int *calls)
{
    (void)region, (void)counts;
    *events = *calls = 0;
    *time = 0;
}
