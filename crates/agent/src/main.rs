use std::process::ExitCode;

fn main() -> ExitCode {
    taco_agent::command_line::main()
}
