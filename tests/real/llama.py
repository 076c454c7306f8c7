"""llama.cpp's own HTTP server on one port, until it is told to stop. Usage: llama.py MODEL.gguf PORT"""

import signal
import sys
import threading

import xllamacpp

model, port = sys.argv[1], int(sys.argv[2])
parameters = xllamacpp.CommonParams()
parameters.model.path = model
parameters.model_alias = {"smollm2-135m"}
parameters.hostnames = ["127.0.0.1"]
parameters.port = port
parameters.n_parallel = 2
parameters.n_ctx = 4096
# More threads than free cores wait for each other in circles.
parameters.cpuparams.n_threads = 1
parameters.cpuparams_batch.n_threads = 1

stopped = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stopped.set())
server = xllamacpp.Server(parameters)
stopped.wait()
