"""The console: a page and a REST interface for people who would rather look than read (docs/console.md)."""
