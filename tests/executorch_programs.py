"""ExecuTorch programs of two products, as torch 2.13 and executorch 1.5.1 lowered them.

Lowering takes a minute and its packages half a gigabyte; the weights are (n mod 13 - 6) / 8.
"""

from __future__ import annotations

import base64
import os
import tempfile
import zlib
from pathlib import Path

import numpy as np

XNNPACK = (
    "c-"
    "rk&zi%8x6rNkJ&zoaOj^l(}SkdW}!bOB;f6eYj5jjO5QJ^RVg(YLb?(B?gak`wGvoL}vE>fhRprE8ch=P(L1qCv$"
    "s8YC~NRc9<;*WqVZ+72$XD?0>#efhur?)fnX5Kg7ym|BHt`b7tdEarxHl+h-"
    "f4@x1(k`nnFO+qktig8`>MpT~1#J`BN<+wgi;(*u>qadm=xxwFfcgVc_SgT&^JQ$0K&ap>@%@Aasqj)yG8S-"
    "0gsv1aPGu@0O4HC!Jx-$lY8D2Om-"
    ";btB+VG5Qt|p6Fij29gIPXfp7fmv&|*jW9*vTSg|QS)90?&DpSjTSyqL$rOHvvKzVw1Xuqcid<}qL{X_%oCMqI=+"
    "NF5$<DIzyyT!=_=H(+THxqiqw^%BYAEaRRZFqXxzVi-VAid11<`ZLcB4U>sD^rMiAglCx($XEoD`l0KJR3@B-"
    "ZkD*rkNwQ`J=f!*D>9$)AP8i}7^9iO{OD=9_ZF#(I<~Jt?x}H*s~`hh_s2ZXyEyOQLTz&ldSamd)mr~M=ntxnrnl"
    "hKZ9ufjPFa@q@ourA8v4ep^=9#_i{iajwB8`=<Pz{)(<00SE%*&20-"
    "2&5gZv8eNW~@qJO<u|hWTU;U#)it`><6!7I9pbA3%qGYn_MB#$+;0_{Y~l#3ZZjOMi7vICT(bgwn#k1>aY2&*)>r"
    "!h2#N4@2Xnb8Klk1JBJwj;n=ld%*kkVkHYb*~4{KPkcz)_wl@1)mp8xuHw!D_UDjKh1(;qJ%iiVaog=;-"
    "|gq%c5&|(;wpI?L|vp!=knmQ;q23?7+x7n_QvDOgCV~)nTh?Grr6#YXS-tZ;q9s5px)fNvjw(K=k15--p+WoGr9f"
    "dY;QUi!v@w+felYXJ2U$i;eY2;-q{YH%`LmRHGCcfIAH~RAaCt{lI&*W?<^bdQhKq-"
    "68mQJ#+JEb;|6uq9UT;BY{QxN%lLr^QFrt`uy_Co^D)N7L#U5hWz4Cx@Ex=xkcZIT##sCfa+iv;97~m#&gxybo;U"
    "HU%Xe09#J6+!2O9sEe=j=VUzJ76eAC#6Rj>2%Z%F6l-god^^t{y8@{)?hub?wh=L+%@zA-"
    "n^?g^ZynqJ054<e&o#0tS^=^<*BGpbzDCe0l62ys;VqS`Oatn#plepuFWyOr1TZ{YlDjU}9KYWOOizsQ?hS2eE6+"
    "d5YpF_tu*3gbXq_m?@I2HF_Nb5P{P^Wa0PI=*N8)WxiOnxArftE#oDoU7yY(bLsVRIjUHS(?ucjpxnA8@Ezeckn6"
    "dqYrJst!}=Jy6SGXaePG^SGMbox3PW)!E<-*lm7>HF<$Xn!Zs!UWEuSoUIif_M~A@gQ2k}V!MC6fas)!I!90-"
    "BwS~>XW?{3iS=cOW7B>HNn}3_{;#~gUHqE(z0f)wvSO"
)
PLAIN = (
    "c-rk%u}>3G7=Kr;*A|POh}am0%Z0(AF<@LIM2JDdAHYBY4PbkwO-kF8YlJ9CLx^E;U|?YI4=~0U2L>l(aBy&BWMD"
    "AFfx*E^r04Iw`|j?w9w8<s#&|FJ^}W0A`+eW<eeZkMQO4N)so`5zacIcEx|n2QG-=-"
    "KX8zDw2ETon(=5qU%>0S5NuVHM=hSgj%yAYnI^s8__zI8~E<Ca-T;=?--+);4vm0!X8F<P_y82-"
    "m1a1>{fX^U(0gi!;2Av7UVp7azDp+>`Q$SXzV9faLI7!mRZPkX&xU2=+s*H@(t#X60i4dO)zRyCTu(-"
    "&IAwIpnPtB??Hf(DyU#+dUd(?%RZhv3h#MKoSyuSOuHc$q}J-"
    "sJx9$u;g%E{v;C@+uE1Mu8efXjqwiMQ;yXUGvFEj@&$<Tpy|7{yLee2$lrU*V)(heEOAVuwuBDn&SiuTH$A=mM2~"
    "U3hI2@8~gw_Tk0my?FppFMxUA2CxsIHZTQ@0y^*xge|}Zvb;~g`$&DWL3K4K=F=bko?=JnbA@tmN$=mZg7<v94Q%"
    "mOu=SDLjNivhTZa$dltQ)Six{nW-fuyS#PybYHr#fRa$KT$;55*&4Zp1P{J?3~H5u6A_nbf%pEIQE8SO>Z<kezB;"
    ";%X3`<jIhCxz{c$N41bJL=GPh}>ym(a?V?)97sd0e_)0-"
    "V43gM3<&TC#j;h!}J`Vo?U0IXSNm8dCdvxtWnAY&Fh{vm{q2VdTcs@-"
    "gJlF*OJzLcJ&vnnNF>mChoi!L)NO3)+BCDitdINyHDKcG<{~>*gDz08hnLze$m2ez<uYP;9RGv2HY#{f0LM|NOz9"
    "gw<OMUth+)uaxT?7e~I@2>)1KD+<o)PN&5y@Z|eZ}zezbqgF)|;^nFdzcVz;&1I!F(jVGqPQnSnvqtYmsvxb?kR%"
    "~n8mR=M~<wD)6%q`WdJYLV_R&(ICI{D_qMyYI<DoZ!*My+g_ZLv%q%nXb6$N0aae>GHhp_I2f($3_}vqI$DyYi@7"
    "f4opHu(QYbdz=KofW2M(y8vvLjCb)2>;Y^He!%!x#ECc&C*nk$h!b)Cb<W?`8=cGl&1v`j38^$PV*"
)


def content(program: str = XNNPACK) -> bytes:
    """A program's bytes."""
    return zlib.decompress(base64.b85decode(program))


def computed(x: np.ndarray) -> np.ndarray:
    """What both programs make of an input, by NumPy."""

    def weights(*shape: int) -> np.ndarray:
        made: np.ndarray = (np.arange(np.prod(shape)) % 13 - 6).reshape(shape) / 8
        return made

    hidden = np.maximum(x @ weights(32, 16).T + weights(32), 0)
    result: np.ndarray = hidden @ weights(4, 32).T + weights(4)
    return result


def kept() -> Path:
    """The program where every process of the tests finds it."""
    folder = Path(tempfile.gettempdir()) / f"accelbench-tests-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    path = folder / "products.pte"
    if not path.exists():
        made = folder / f"{os.getpid()}.pte"
        made.write_bytes(content())
        made.replace(path)
    return path
