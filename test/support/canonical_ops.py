"""The canonical text of each core op, one example per line."""

CANONICAL = [
    # constructors
    '%l = cute.static : !cute.layout<"(6,(2,4)):(8,(4,1))">',
    '%k = cute.static {name = "k"} : !cute.coord<"(_,3)">',
    '%w = cute.static : !cute.swizzle<"S<2,3,3>">',
    '%i = cute.make_int_tuple() : () -> !cute.int_tuple<"(6,5)">',
    '%s = cute.make_shape(%m, %n) : (i32, i64) -> !cute.shape<"(?,(8,?{i64}))">',
    '%s = cute.make_shape(%m, %n) : (!cute.int_tuple<"?">, !cute.int_tuple<"7">) -> !cute.shape<"(?,(8,?{i64}))">',
    '%s = cute.make_shape(%m) : (!cute.i32<divby 16>) -> !cute.shape<"(?{div=8},8)">',
    '%s = cute.make_shape(%m) : (!cute.i64<divby 16>) -> !cute.shape<"?{i64 div=16}">',
    '%d = cute.make_stride(%ld) : (i32) -> !cute.stride<"(?@0,1@1)">',
    '%c = cute.make_coord(%i) {note} : (i32) -> !cute.coord<"((_,_),?)">',
    '%t = cute.make_tile(%a, %b) : (i32, i32) -> !cute.tile<"[(?,4):(1,?);_]">',
    '%l = cute.make_layout(%s, %d) : (!cute.shape<"(?,6)">, !cute.stride<"(6,1)">) -> !cute.layout<"(?,6):(6,1)">',
    '%c = cute.make_composed_layout(%w, %o, %b) : (!cute.swizzle<"S<2,3,3>">, <"?">, <"(8,8):(8,1)">)'
    ' -> <"S<2,3,3> o ? o (8,8):(8,1)">',
    '%l = cute.make_layout_like(%x) : !cute.layout<"(?,5):(?,?)"> -> !cute.layout<"(?,5):(1,?)">',
    '%l = cute.make_ordered_layout(%s, %o) : (!cute.shape<"(6,?,2)">, !cute.int_tuple<"(1,0,2)">)'
    ' -> !cute.layout<"(6,?,2):(?,1,?)">',
    '%l = cute.make_identity_layout(%s) : !cute.shape<"(6,?{i64})"> -> !cute.layout<"(6,?{i64}):(1@0,1@1)">',
    # accessors
    '%s = cute.get_shape(%l) : !cute.layout<"(?,(2,5)):(10,(5,1))"> -> !cute.shape<"(?,(2,5))">',
    '%d = cute.get_stride(%l) {note = 1 : i32} : <"(6,5):(1@1,1@0)"> -> !cute.stride<"(1@1,1@0)">',
    '%a = cute.composed_get_inner(%c) : <"S<2,3,3> o 5 o (8,8):(1,8)"> -> !cute.swizzle<"S<2,3,3>">',
    '%a = cute.composed_get_inner(%c) : <"(4,?):(1,4) o 5 o 8:1"> -> !cute.layout<"(4,?):(1,4)">',
    '%o = cute.composed_get_offset(%c) : <"S<2,3,3> o ? o (8,8):(1,8)"> -> !cute.int_tuple<"?">',
    '%b = cute.composed_get_outer(%c) : <"S<2,3,3> o 5 o (8,?):(1,8)"> -> <"(8,?):(1,8)">',
    '%a, %b, %c = cute.get_leaves(%s) : !cute.shape<"(6,(?,2))">',
    '%a = cute.get_leaves(%s) : !cute.coord<"_">',
    '%v, %v_1 = cute.get_scalars<{only_dynamic}> (%l) : !cute.layout<"(?,6):(6,?{i64})">',
    '%v, %v_1, %v_2 = cute.get_scalars (%s) {note} : !cute.swizzle<"S<2,3,3>">',
    '%r = cute.get<[1, 0]> (%l) : !cute.layout<"(6,(2,?)):(10,(5,1))"> -> !cute.layout<"2:5">',
    '%r = cute.get (%l) : !cute.shape<"(6,5)"> -> !cute.shape<"(6,5)">',
    '%r = cute.select<[2, 0]> (%l) : !cute.layout<"(6,5,2):(10,2,1)"> -> !cute.layout<"(2,6):(1,10)">',
    '%r = cute.select<[]> (%s) : !cute.shape<"(6,5)"> -> !cute.shape<"()">',
    '%a, %b = cute.get_layouts_from_tile(%t) : <"[6:1;_;[(2,?):(?,1);_]]">',
    '%i = cute.to_int_tuple(%s) : !cute.shape<"(6,(?,2))"> -> !cute.int_tuple<"(6,(?,2))">',
    '%i = cute.to_shape(%s) : !cute.int_tuple<"(6,?{i64})"> -> !cute.shape<"(6,?{i64})">',
    '%i = cute.to_stride(%s) : !cute.int_tuple<"(6,?{i64})"> -> !cute.stride<"(6,?{i64})">',
    '%i = cute.to_coord(%s) : !cute.int_tuple<"(6,?{i64})"> -> !cute.coord<"(6,?{i64})">',
    # layout algebra
    '%r = cute.composition(%a, %b) : (!cute.layout<"8:3">, !cute.layout<"(?,2):(1,?)">) -> !cute.layout<"(?,2):(3,?)">',
    '%r = cute.composition(%a, %b) : (!cute.composed_layout<"S<2,3,3> o 4 o (12,8):(8,1)">, !cute.tile<"[3:4;_]">)'
    ' -> !cute.composed_layout<"S<2,3,3> o 4 o (3,8):(32,1)">',
    '%r = cute.coalesce(%l) : (!cute.layout<"(?,1,3):(2,4,?)">) -> !cute.layout<"(?,3):(2,?)">',
    '%r = cute.coalesce(%l, %p) : (!cute.layout<"(5,(4,2)):(1,(5,20))">, !cute.coord<"(1,1)">)'
    ' -> !cute.layout<"(5,8):(1,5)">',
    '%r = cute.flatten(%t) {note} : (!cute.tile<"[6:1;[2:1;_]]">) -> !cute.tile<"[6:1;2:1;_]">',
    '%r = cute.complement(%l) : (!cute.layout<"5:2">) -> !cute.layout<"(2,1):(1,10)">',
    '%r = cute.complement(%l, %m) : (!cute.layout<"4:2">, !cute.shape<"(6,?)">) -> !cute.layout<"(2,?):(1,8)">',
    '%r = cute.group_modes<0, 2> (%l) : (!cute.layout<"(2,?,4):(1,2,?)">) -> !cute.layout<"((2,?),4):((1,2),?)">',
    '%r = cute.recast_layout<32, 16> (%l) : !cute.layout<"(?,4):(1,?)"> -> !cute.layout<"(?,4):(1,?)">',
    '%r = cute.slice(%l, %c) : !cute.layout<"((16,128),(?,?)):((?,1),(?,128))">, !cute.coord<"((_,_),?)">',
    '%r = cute.dice(%l, %c) {note} : !cute.layout<"((3,2),5):((2,1),6)">, !cute.coord<"((1,_),_)">',
    '%r = cute.right_inverse(%l) : (!cute.layout<"(4,2):(?,1)">) -> !cute.layout<"2:4">',
    '%r = cute.left_inverse(%l) : (!cute.layout<"(3,4):(8,2)">) -> !cute.layout<"(2,4,3):(0,3,1)">',
    # size and index
    '%n = cute.size<[1]> (%s) : (!cute.shape<"(6,(2,?))">) -> !cute.int_tuple<"?">',
    '%n = cute.size (%s) : (!cute.shape<"()">) -> !cute.int_tuple<"1">',
    '%n = cute.cosize (%l) : (!cute.layout<"(5,?):(1,5)">) -> !cute.int_tuple<"?">',
    '%p = cute.tuple_product(%s) : (!cute.shape<"(6,(?,2))">) -> !cute.shape<"?">',
    '%p = cute.tuple_product_each(%s) : (!cute.int_tuple<"(6,(?,2),())">) -> !cute.int_tuple<"(6,?,1)">',
    '%i = cute.layout_eval(%c, %l) : (!cute.coord<"(?,2)">, !cute.layout<"(6,5):(1@0,3@1)">)'
    ' -> !cute.int_tuple<"(?,6)">',
    '%i = cute.crd2idx(%c, %s) : (!cute.coord<"(1,2)">, !cute.shape<"(?,3)">) -> !cute.int_tuple<"?">',
    '%i = cute.crd2idx(%c, %s) : (!cute.coord<"(1,2)">, !cute.layout<"(?,3):(1,?)">) -> !cute.int_tuple<"?">',
    '%c = cute.idx2crd(%i, %s) : (!cute.int_tuple<"?{i64}">, !cute.shape<"(4,2)">) -> !cute.coord<"(?{i64},?{i64})">',
    '%n = cute.increment_coord(%c, %s) : (!cute.coord<"(?,1)">, !cute.shape<"(6,3)">) -> !cute.coord<"(?,?)">',
    '%r = cute.append_to_rank<3> (%l, %e) : !cute.layout<"6:2">, !cute.layout<"1:0">',
    '%r = cute.prepend_to_rank<3> (%l, %e) {note} : !cute.stride<"(?,2)">, !cute.stride<"0">',
    # arithmetic
    '%r = cute.tuple_add(%a, %b) : (!cute.int_tuple<"(1,?)">, !cute.int_tuple<"(2,0)">) -> !cute.int_tuple<"(3,?)">',
    '%r = cute.tuple_sub(%a, %b) : (!cute.shape<"(7,8)">, !cute.shape<"(1,2,5)">) -> !cute.shape<"(6,6,5)">',
    '%r = cute.shape_div(%a, %b) : (!cute.shape<"(?,6)">, !cute.shape<"4">) -> !cute.shape<"(?,?)">',
    '%r = cute.ceil_div(%s, %t) : (!cute.shape<"(?,18)">, !cute.tile<"[2:1;4:1]">) -> !cute.shape<"(?,5)">',
    '%p = cute.elem_less(%c, %s) {note} : (!cute.coord<"(?,3)">, !cute.shape<"(6,?)">) -> i1',
    '%p = cute.equal(%a, %b) : (!cute.layout<"(?,6):(6,1)">, !cute.layout<"(4,6):(6,1)">) -> i1',
    # products and divides
    *[
        f'%r = cute.{op}_product(%a, %b) : (!cute.layout<"4:1">, !cute.layout<"?:3">) -> !cute.layout<"{result}">'
        for op, result in [
            ("logical", "(4,?):(1,12)"),
            ("zipped", "(4,?):(1,12)"),
            ("tiled", "(4,?):(1,12)"),
            ("flat", "(4,?):(1,12)"),
            ("blocked", "((4,?)):((1,12))"),
            ("raked", "((?,4)):((12,1))"),
        ]
    ],
    *[
        f'%r = cute.{op}_divide(%l, %t) : (!cute.layout<"(?,?):(?,1)">, !cute.shape<"(16,128)">)'
        f' -> !cute.layout<"{result}">'
        for op, result in [
            ("logical", "((16,?),(128,?)):((?,?),(1,128))"),
            ("zipped", "((16,128),(?,?)):((?,1),(?,128))"),
            ("tiled", "((16,128),?,?):((?,1),?,128)"),
            ("flat", "(16,128,?,?):(?,1,?,128)"),
        ]
    ],
    '%r = cute.tile_to_shape(%b, %s) : (!cute.layout<"(4,2):(1,4)">, !cute.shape<"(?,8)">)'
    ' -> !cute.layout<"((4,?),(2,4)):((1,8),(4,?))">',
    '%r = cute.tile_to_shape(%b, %s, %o) : (!cute.layout<"(2,3):(3,1)">, !cute.shape<"(4,6)">,'
    ' !cute.int_tuple<"(1,0)">) -> !cute.layout<"((2,2),(3,2)):((3,12),(1,6))">',
    # diagnostics
    'cute.print(%l) : !cute.layout<"(?,6):(6,1)">',
    'cute.print(%l) : !cute.tile<"[_;4:?]"> {note}',
]
