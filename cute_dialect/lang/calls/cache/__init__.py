"""Cached calls: the specialization of a call is looked up in three places, the cheapest first.

1. Generated code (:mod:`.fast_path`) recognizes the arguments of the latest calls on the GPU and launches.
2. A table in memory (:class:`~cute_dialect.lang.calls.specializations.Specializations`) is indexed by the generic
   parameters, the specs of the arguments, the options and the sizes of the launch.  Constants enter by :mod:`.keys`.
3. The cache on disk (:mod:`.disk`) is indexed by a digest (:mod:`.digests`) of the same parts and of the function with
   everything that it names.

The first two hold only while the objects that the trace read are unchanged (:mod:`.dependencies`).
"""
