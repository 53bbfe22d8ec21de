use std::process::ExitCode;

fn main() -> ExitCode {
    taco_server::cli::run()
}
