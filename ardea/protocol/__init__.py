"""What travels: messages, ids, keys, values, flow counters.  No sockets, no clocks."""
