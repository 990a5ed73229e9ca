"""Prints the CPU time, in seconds, that a server and its workers have taken. The argument is the server's process id."""

import sys

import psutil

server = psutil.Process(int(sys.argv[1]))
print(sum(sum(p.cpu_times()[:2]) for p in [server, *server.children(recursive=True)]))
