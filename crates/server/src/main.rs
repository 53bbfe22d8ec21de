use std::process::ExitCode;

/// A request needs a hundred small pieces of memory, and a download some large ones, which the system's own allocator
/// takes from the kernel each time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    taco_server::cli::run()
}
