pub mod steal;
