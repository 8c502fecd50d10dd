from unflip.density_ratio._kliep import KLIEP
