"""A Ray cluster of three nodes, each a set of processes: a program, because Ray leaves files open.

It prints the address, loses a node at the line `lose` of its input, and stops everything when the input ends.
"""

import os
import shutil
import sys
import tempfile

NODE = {"num_cpus": 1, "object_store_memory": 80 << 20, "include_dashboard": False}


def main() -> None:
    place = tempfile.mkdtemp(prefix="r", dir="/tmp")  # sockets need a short path
    os.environ["RAY_TMPDIR"] = place  # also for the address: without a cluster before, /tmp/ray is missing
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args=NODE)
    try:
        others = [cluster.add_node(**NODE) for _ in range(2)]
        cluster.wait_for_nodes()
        print(f"address {cluster.address}", flush=True)
        for line in sys.stdin:
            if line.strip() == "lose":
                cluster.remove_node(others.pop(), allow_graceful=False)
                print("lost", flush=True)
    finally:
        cluster.shutdown()
        shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main()
