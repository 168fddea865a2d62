"""Many machines as one pool of workers: the driver's own pool is node 0, and further nodes take over calls of it.

    schedule.py     which call goes to which node, who is given up, what goes out again: from values and times alone
    orders.py       what a node is told and what it says of itself; whether it may take part
    host.py         the node's side: a worker pool that takes calls as bytes and hands back plain values
    members.py      where each node stands, from its first sight to its loss; recruiting.py asks them
    pool.py         the driver's side: a pool like :class:`~sandbox.workers.WorkerPool`, over a cluster of nodes
    build.py        a runtime's pool over a cluster; survey.py asks nodes what they give, without rewards
    cluster.py      what is needed of a cluster, and the thread that waits for it
    ray_cluster.py  the cluster where Ray is what reaches the nodes; the only module that knows Ray

A batch's plan, cache, retries, compositions and versions are above the pool and so in the driver.
"""
