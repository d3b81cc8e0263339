"""What ``-o json`` prints and the console serves, as types: fields are only ever added."""
